"""The second step: predictions of trained networks on the sets that are asked for, stored once."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import NUMPY
from credalens.checks.options import count_text
from credalens.core.members import MemberSummary
from credalens_paper.experiments.ensembles import Ensemble, EvaluationSet, spec_key
from credalens_paper.pipeline.job import Job
from credalens_paper.pipeline.train_missing import is_diverged
from credalens_paper.training.spec import TrainSpec

Array = NDArray[Any]
Sets = Mapping[EvaluationSet, Sequence[int]]
"""Evaluation sets, each with the numbers of samples that are asked for: the most to store, the most to sum."""


def is_predicted(job: Job, spec: TrainSpec, images: EvaluationSet, samples: int, /) -> bool:
    """Whether so many predictions are stored, or their sums where there are too many to keep."""
    if samples > job.preset.keep:
        sums = job.store.summary(spec_key(spec), images.key)
        return sums is not None and int(sums["count"]) >= samples
    return job.store.predictions(spec_key(spec), images.key, samples) is not None


def is_summed(job: Job, ensemble: Ensemble, /) -> bool:
    """Whether only sums over its samples are stored."""
    return ensemble.samples > job.preset.keep


def missing_predictions(
    job: Job, wanted: Iterable[tuple[Ensemble, Iterable[EvaluationSet]]], /
) -> dict[TrainSpec, dict[EvaluationSet, list[int]]]:
    """What is not stored of these ensembles on these sets, network by network."""
    most: dict[tuple[TrainSpec, EvaluationSet, bool], int] = {}
    for ensemble, sets in wanted:
        for spec in ensemble.specs:
            for images in sets:
                key = (spec, images, is_summed(job, ensemble))
                most[key] = max(most.get(key, 0), ensemble.samples)
    missing: dict[TrainSpec, dict[EvaluationSet, list[int]]] = {}
    for (spec, images, _), samples in most.items():
        if not is_predicted(job, spec, images, samples):
            missing.setdefault(spec, {}).setdefault(images, []).append(samples)
    return missing


def predict(job: Job, missing: Mapping[TrainSpec, Sets], /) -> None:
    """Predict with all networks that are trained."""
    trained = [(spec, sets) for spec, sets in missing.items() if not is_diverged(job, spec)]
    if job.engine.pool is not None:
        job.engine.pool.each(job, predict_network, trained, on_device=True)
        return
    for item in trained:
        predict_network(job, item)


def predict_network(job: Job, item: tuple[TrainSpec, Sets], /) -> None:
    """Store the predictions of one network on some sets."""
    spec, sets = item
    job.deadline.check()
    network = job.engine.load(spec, job.store.models)
    job.store.write_json(_record(spec), job.engine.training_record(spec, job.store.models))
    job.log(f"predicting {spec_key(spec)} on {count_text(len(sets), 'set')}")
    if job.images.reason(spec.data, pixels=spec.image_size) is None:
        job.images.labels(spec.data)  # stored, so that predictions are evaluated where there are no data
    job.images.prepare(sets, spec.image_size)
    for images, counts in sets.items():
        job.deadline.check()
        predictor = _Predictor(job, network, spec, images, job.images.test(images, spec.image_size))
        for samples in counts:
            if samples > job.preset.keep:
                predictor.sum_samples(samples)
            else:
                predictor.store_samples(samples)


@dataclass(frozen=True)
class _Predictor:
    """One network on the images of one set."""

    job: Job
    network: Any
    spec: TrainSpec
    images: EvaluationSet
    pixels: Array

    @property
    def set_key(self) -> str:
        return self.images.key

    def store_samples(self, samples: int, /) -> None:
        engine, spec, preparation = self.job.engine, self.spec, self.images.preparation
        if spec.distilled:
            predictions = engine.concentrations(self.network, spec, self.pixels, preparation=preparation)[None]
        elif not spec.bayesian:
            predictions = self._predict(samples=1, seed=0)
        else:
            predictions = self._draw(samples)
        # Concentrations reach beyond the range of float16.
        dtype = "float32" if spec.distilled else None
        self.job.store.save_predictions(spec_key(spec), self.set_key, predictions, dtype=dtype, engine=engine.about())

    def sum_samples(self, samples: int, /) -> None:
        """Sums over many samples, stored as they grow: a thousand samples need the memory of a few."""
        sums = self.job.store.summary(spec_key(self.spec), self.set_key)
        summary = MemberSummary() if sums is None else _summary(sums)
        while summary.count < samples:
            self.job.deadline.check()
            drawn = self._draw_group(summary.count // self.job.preset.draws)
            summary.update(drawn[: samples - summary.count].astype(np.float64))
            self.job.store.save_summary(spec_key(self.spec), self.set_key, _sums(summary))

    def _draw(self, samples: int) -> Array:
        """Samples in groups of `draws`, each under its own seed: more samples later leave the first as they are."""
        draws, parts = self.job.preset.draws, []
        for start in range(0, samples, draws):
            stored = self.job.store.predictions(spec_key(self.spec), self.set_key, start + draws)
            parts.append(stored[start:] if stored is not None else self._draw_group(start // draws))
        return np.concatenate(parts)

    def _draw_group(self, group: int) -> Array:
        seed = zlib.crc32(f"{spec_key(self.spec)} {self.set_key} {group}".encode())
        return self._predict(samples=self.job.preset.draws, seed=seed)

    def _predict(self, **draws: int) -> Array:
        how = self.images.preparation
        return self.job.engine.predict(self.network, self.spec, self.pixels, preparation=how, **draws)


def _sums(summary: MemberSummary) -> dict[str, Array]:
    return {
        "count": np.asarray(summary.count),
        "lower": summary.lower,
        "upper": summary.upper,
        "probability": summary.sum_probability,
        "entropy": summary.sum_entropy,
    }


def _summary(sums: Mapping[str, Array]) -> MemberSummary:
    return MemberSummary(
        count=int(sums["count"]),
        lower=sums["lower"],
        upper=sums["upper"],
        sum_probability=sums["probability"],
        sum_entropy=sums["entropy"],
        array_kind=NUMPY,
    )


def stored_members(job: Job, ensemble: Ensemble, images: EvaluationSet, /) -> Array:
    """Predictions of an ensemble, (N, inputs, classes)."""
    parts = []
    for spec in ensemble.specs:
        stored = job.store.predictions(spec_key(spec), images.key, ensemble.samples)
        if stored is None:
            raise FileNotFoundError(
                f"{count_text(ensemble.samples, 'prediction')} of {spec_key(spec)} on {images.key}: not stored; run without "
                "--only-train first"
            )
        parts.append(stored)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def stored_summary(job: Job, ensemble: Ensemble, images: EvaluationSet, /) -> MemberSummary:
    """Many samples of one network, from their sums."""
    sums = job.store.summary(spec_key(ensemble.specs[0]), images.key)
    if sums is None:
        raise FileNotFoundError(f"no predictions of {spec_key(ensemble.specs[0])} on {images.key}")
    return _summary(sums)


def training_record(job: Job, spec: TrainSpec, /) -> dict[str, Any] | None:
    """How a network was trained, as far as it is known here, with the device that it predicted on."""
    record = job.store.read_json(_record(spec))
    if record is None:
        return None
    folder = (job.store.folder / _record(spec)).parent
    notes = [job.store.read_json(str(path.relative_to(job.store.folder))) for path in sorted(folder.glob("*.json"))]
    device = next((note["engine"]["device"] for note in notes if note.get("engine")), None)
    return dict(record) if device is None else {**record, "provenance": {**record["provenance"], "device": device}}


def _record(spec: TrainSpec) -> str:
    return f"predictions/{spec_key(spec)}/training.json"
