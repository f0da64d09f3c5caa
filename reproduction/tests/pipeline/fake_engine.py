"""An engine that trains in no time: its networks are random projections of the image, and it counts what it does."""

from __future__ import annotations

import numpy as np


class FakeEngine:
    """Predictions depend on spec, image and draw alone. `diverging` names seeds whose training fails."""

    def __init__(self, *, diverging=(), side_by_side=2, pool=None):
        self.side_by_side, self.pool = side_by_side, pool
        self.diverging = set(diverging)
        self.trainings, self.predictions = [], []

    def trained(self, spec, folder):
        return (folder / spec.key / "weights").is_file()

    def train(self, specs, data, folder):
        assert len(data.images) == len(data.labels)
        assert data.labels.max() < specs[0].classes
        for spec in specs:
            for teacher in spec.teacher_specs():
                assert self.trained(teacher, folder), "a student before its teachers"
            if (spec.method, spec.seed) in self.diverging:
                raise FloatingPointError(f"Training of {spec.key} diverged: the loss is not a number.")
            assert not self.trained(spec, folder), "trained twice"
            self.trainings.append(spec)
            (folder / spec.key).mkdir(parents=True)
            (folder / spec.key / "weights").touch()

    def load(self, spec, folder):
        assert self.trained(spec, folder)
        return spec

    def predict(self, network, spec, images, *, samples=1, seed=0, preparation=""):
        assert spec.bayesian or samples == 1
        self.predictions.append((spec.key, samples))
        logits = self._signal(spec, images) + self._noise(spec, (samples, len(images), spec.classes), seed)
        if spec.distilled:
            return np.exp(logits).astype(np.float32)
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return (odds / odds.sum(axis=-1, keepdims=True)).astype(np.float32)

    def training_record(self, spec, folder):
        return {"schedule": {"epochs": 1}, "seconds": 1.5, "provenance": {"device": "abacus"}}

    def about(self):
        return {"device": "abacus", "precision": "float32"}

    @staticmethod
    def _signal(spec, images):
        weights = np.random.default_rng([spec.seed, len(spec.method)]).normal(size=(images[0].size, spec.classes))
        return images.reshape(len(images), -1) / 255 @ weights / 3

    @staticmethod
    def _noise(spec, shape, seed):
        return np.random.default_rng(seed).normal(size=shape) if spec.bayesian else np.zeros(shape)
