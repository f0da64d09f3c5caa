"""From specs to stored predictions: train what is missing, predict what is missing, stop when time is up."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import NUMPY
from credalens.core.members import MemberSummary
from credalens_paper.experiments.cells import Ensemble, EvaluationSet, spec_key
from credalens_paper.experiments.presets import Preset
from credalens_paper.pipeline.engine import Engine
from credalens_paper.pipeline.images import Images
from credalens_paper.results.store import Store, read_json, write_json
from credalens_paper.training.spec import TrainSpec

__all__ = ["Deadline", "Models", "TimeIsUp"]

Array = NDArray[Any]


class TimeIsUp(Exception):  # noqa: N818  (not an error: the run stops where it can go on)
    """The time limit has passed; everything so far is stored."""


@dataclass(frozen=True)
class Deadline:
    """Asked between two units of work, so that a run ends with whole ones."""

    seconds: float | None = None
    begun: float = field(default_factory=lambda: time.monotonic())

    def check(self) -> None:
        """Stop here if the time is up."""
        if self.seconds is not None and time.monotonic() - self.begun > self.seconds:
            raise TimeIsUp(f"the time limit of {self.seconds:g} s has passed; run the same command again to go on")


@dataclass(frozen=True, eq=False)
class Models:
    """Trains and predicts into the store; nothing is made twice."""

    store: Store
    preset: Preset
    images: Images
    engine: Engine
    deadline: Deadline = field(default_factory=Deadline)
    log: Callable[[str], None] = print
    _seen: set[tuple[str, str, int]] = field(default_factory=set)

    def trained(self, spec: TrainSpec, /) -> bool:
        """Whether a network is finished."""
        return self.engine.trained(spec, self.store.models)

    def diverged(self, spec: TrainSpec, /) -> bool:
        """Whether its loss, or that of a teacher, became NaN; the file named in the message can be deleted to try again."""
        return any(self._mark(one).is_file() for one in (spec, *spec.teacher_specs()))

    def train(self, specs: Iterable[TrainSpec], /) -> None:
        """Train the missing ones: teachers first, networks of one kind side by side."""
        wanted = {teacher: None for spec in specs for teacher in (*spec.teacher_specs(), spec)}
        missing = [spec for spec in wanted if not self.diverged(spec) and not self.trained(spec)]
        for _, group in groupby(sorted(missing, key=_kind), key=_kind):
            alike, count = list(group), self.engine.side_by_side
            for start in range(0, len(alike), count):
                self.deadline.check()
                self._train(alike[start : start + count])

    def _train(self, specs: list[TrainSpec]) -> None:
        left = [spec for spec in specs if not self.diverged(spec)]
        while left:
            self.log(f"training {', '.join(spec_key(spec) for spec in left)}")
            try:
                data = self.images.training(left[0].data, left[0].image_size)
                return self.engine.train(left, data, self.store.models)
            except FloatingPointError as error:
                at_fault = [spec for spec in left if spec_key(spec) in str(error)]
                if not at_fault:
                    raise
                write_json(self._mark(at_fault[0]), {"message": str(error)})
                self.log(f"{error} Its runs are left out; delete {self._mark(at_fault[0])} to try again.")
                left.remove(at_fault[0])
        return None

    def predict(self, spec: TrainSpec, sets: Mapping[EvaluationSet, int], /) -> None:
        """Predictions of one network on some sets, each with so many samples, as far as they are missing."""
        missing = {s: samples for s, samples in sets.items() if not self.predicted(spec, s, samples)}
        if not missing:
            return
        self.deadline.check()
        network = self.engine.load(spec, self.store.models)
        about = self.engine.training_record(spec, self.store.models)
        write_json(self.store.folder / "predictions" / spec_key(spec) / "training.json", about)
        self.log(f"predicting {spec_key(spec)} on {len(missing)} sets")
        self.images.prepare(missing, spec.image_size)
        for one, samples in missing.items():
            self.deadline.check()
            images = self.images.test(one, spec.image_size)
            if samples > self.preset.keep:
                self._summarise(network, spec, one, images, samples)
            else:
                self._predict(network, spec, one, images, samples)

    def predicted(self, spec: TrainSpec, one: EvaluationSet, samples: int, /) -> bool:
        """Whether the predictions are stored; what was once seen is not looked up again."""
        key = (spec_key(spec), one.key, samples)
        if key in self._seen:
            return True
        if samples > self.preset.keep:
            parts = self.store.summary(spec_key(spec), one.key)
            there = parts is not None and int(parts["count"]) >= samples
        else:
            there = self.store.predictions(spec_key(spec), one.key, samples) is not None
        if there:
            self._seen.add(key)
        return there

    def _predict(self, network: Any, spec: TrainSpec, one: EvaluationSet, images: Array, samples: int) -> None:
        if spec.distilled:
            made = self.engine.concentrations(network, spec, images)[None]
        elif not spec.bayesian:
            made = self.engine.predict(network, spec, images, samples=1, seed=0)
        else:
            made = self._draw(network, spec, one, images, samples)
        # Concentrations reach beyond the range of float16.
        dtype = "float32" if spec.distilled else None
        self.store.save_predictions(spec_key(spec), one.key, made, dtype=dtype, engine=self.engine.about())

    def _draw(self, network: Any, spec: TrainSpec, one: EvaluationSet, images: Array, samples: int) -> Array:
        """Samples in groups of `draws`, each under its own seed: more samples later leave the first as they are."""
        parts = []
        for group in range(-(-samples // self.preset.draws)):
            start = group * self.preset.draws
            known = self.store.predictions(spec_key(spec), one.key, start + self.preset.draws)
            parts.append(known[start:] if known is not None else self._group(network, spec, one, images, group))
        return np.concatenate(parts)

    def _group(self, network: Any, spec: TrainSpec, one: EvaluationSet, images: Array, group: int) -> Array:
        seed = zlib.crc32(f"{spec_key(spec)} {one.key} {group}".encode())
        return self.engine.predict(network, spec, images, samples=self.preset.draws, seed=seed)

    def _summarise(self, network: Any, spec: TrainSpec, one: EvaluationSet, images: Array, samples: int) -> None:
        """Sums over many samples, stored as they grow: a thousand samples need the memory of a few."""
        parts = self.store.summary(spec_key(spec), one.key)
        summary = MemberSummary() if parts is None else _from_parts(parts)
        while summary.count < samples:
            self.deadline.check()
            drawn = self._group(network, spec, one, images, summary.count // self.preset.draws)
            summary.update(drawn[: samples - summary.count].astype(np.float64))
            self.store.save_summary(spec_key(spec), one.key, _parts(summary))

    def members(self, ensemble: Ensemble, one: EvaluationSet, /) -> Array:
        """Stored predictions of an ensemble, (N, inputs, classes)."""
        parts = [self._stored(spec, one, ensemble.samples) for spec in ensemble.specs]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def summary(self, ensemble: Ensemble, one: EvaluationSet, /) -> MemberSummary:
        """Many samples of one network, from their stored sums."""
        parts = self.store.summary(spec_key(ensemble.specs[0]), one.key)
        if parts is None:
            raise FileNotFoundError(f"no predictions of {spec_key(ensemble.specs[0])} on {one.key}")
        return _from_parts(parts)

    def training_record(self, spec: TrainSpec, /) -> dict[str, Any] | None:
        """How a network was trained, as far as it is known here."""
        path = self.store.folder / "predictions" / spec_key(spec) / "training.json"
        if not path.is_file():
            return None
        record = dict(read_json(path))
        engines = [read_json(one).get("engine") for one in path.parent.glob("*.json") if one != path]
        named = next((engine["device"] for engine in engines if engine), None)
        return record if named is None else {**record, "provenance": {**record["provenance"], "device": named}}

    def _stored(self, spec: TrainSpec, one: EvaluationSet, samples: int) -> Array:
        stored = self.store.predictions(spec_key(spec), one.key, samples)
        if stored is None:
            raise FileNotFoundError(
                f"no {samples} predictions of {spec_key(spec)} on {one.key}; run without --only-train first"
            )
        return stored

    def _mark(self, spec: TrainSpec) -> Any:
        return self.store.folder / "diverged" / f"{spec_key(spec)}.json"


def _kind(spec: TrainSpec) -> tuple[bool, str, int, str, str]:
    return spec.distilled, spec.data, spec.image_size, spec.backbone, spec.method


def _parts(summary: MemberSummary) -> dict[str, Array]:
    return {
        "count": np.asarray(summary.count),
        "lower": summary.lower,
        "upper": summary.upper,
        "probability": summary.sum_probability,
        "entropy": summary.sum_entropy,
    }


def _from_parts(parts: Mapping[str, Array]) -> MemberSummary:
    sums = {"sum_probability": parts["probability"], "sum_entropy": parts["entropy"]}
    return MemberSummary(int(parts["count"]), parts["lower"], parts["upper"], **sums, array_kind=NUMPY)
