"""From stored predictions to stored numbers: one file for each run, one entry for each set."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.core.entropy import lower_entropy, upper_entropy
from credalens.core.intervals import approximate_intervals, probability_intervals
from credalens_paper.experiments.cells import Ensemble, EvaluationSet, spec_key
from credalens_paper.measures import scores as measure
from credalens_paper.measures.scores import Assessment
from credalens_paper.measures.solver import compare_solvers
from credalens_paper.pipeline.models import Models
from credalens_paper.results.provenance import hardware

__all__ = ["Evaluation", "Evaluator", "Numbers"]

Array = NDArray[Any]
Numbers = dict[str, float]


@dataclass(frozen=True)
class Evaluation:
    """One run measured in one way: with the classes that PIA keeps, or with an overconfident member."""

    ensemble: Ensemble
    id_set: str
    J: int | None = None
    regime: str = ""

    @cached_property
    def key(self) -> str:
        """A readable file name."""
        parts = (self.ensemble.key, "" if self.J is None else f"j{self.J}", self.regime)
        return "-".join(part for part in parts if part)

    @property
    def inside(self) -> EvaluationSet:
        """The test set of the training data."""
        return EvaluationSet(self.id_set)


@dataclass(eq=False)
class Evaluator:
    """Evaluates runs into the store, set by set; numbers of other predictions than the stored ones are made again."""

    models: Models
    threads: int | None = None
    _records: dict[str, dict[str, Any]] = field(default_factory=dict)
    _fingerprints: dict[tuple[str, str], str] = field(default_factory=dict)
    _inside: tuple[str, bool, Assessment] | None = None

    def numbers(self, evaluation: Evaluation, one: EvaluationSet, names: Iterable[str], /) -> Numbers | None:
        """The stored numbers of a run on a set, if all names are among them and they are of today's predictions."""
        entry = self._record(evaluation).get("sets", {}).get(one.key)
        if entry is None or not set(names) <= entry["numbers"].keys():
            return None
        today = self._fingerprint(evaluation.ensemble, one)
        return dict(entry["numbers"]) if today in (None, entry["fingerprint"]) else None

    def evaluate(self, evaluation: Evaluation, sets: Iterable[EvaluationSet], names: frozenset[str], /) -> None:
        """Make the missing numbers; with a name of the Hartley measure among `names` that one too."""
        hartley = any(".GH." in name for name in names)
        record = self._record(evaluation)
        record |= {"ensemble": _described(evaluation.ensemble), "hardware": hardware()}
        record["training"] = [self.models.training_record(spec) for spec in evaluation.ensemble.specs]
        try:
            for one in sets:
                self.models.deadline.check()
                self._add(record, evaluation, one, hartley)
        finally:
            self.models.store.save_evaluation(evaluation.key, record)

    def _add(self, record: dict[str, Any], evaluation: Evaluation, one: EvaluationSet, hartley: bool) -> None:
        fingerprint = self._fingerprint(evaluation.ensemble, one)
        entry = record.setdefault("sets", {}).get(one.key)
        kept = entry["numbers"] if entry is not None and entry["fingerprint"] == fingerprint else {}
        made = self._numbers(evaluation, one, hartley)
        record["sets"][one.key] = {"fingerprint": fingerprint, "numbers": kept | made}

    def assess(self, evaluation: Evaluation, one: EvaluationSet, /, *, hartley: bool = False) -> Assessment:
        """Scores and point predictions of a run on a set."""
        ensemble = evaluation.ensemble
        options: dict[str, Any] = {"hartley": hartley, "threads": self.threads}
        if ensemble.dirichlet:
            return measure.assess_concentrations(self.models.members(ensemble, one)[0])
        if self._summed(ensemble):
            return measure.assess_summary(self.models.summary(ensemble, one), **options)
        return measure.assess_members(self.members(evaluation, one), J=evaluation.J, **options)

    def members(self, evaluation: Evaluation, one: EvaluationSet, /) -> Array:
        """The members' predictions, one of them made overconfident where the evaluation says so."""
        members = self.models.members(evaluation.ensemble, one)
        if evaluation.regime != "overconfident":
            return members
        rng = np.random.default_rng(zlib.crc32(f"{evaluation.key} {one.key}".encode()))
        return measure.overconfident(members, rng)

    def compare_solvers(self, evaluation: Evaluation, one: EvaluationSet, /) -> dict[str, float]:
        """Our measures and the paper's solver on a subsample of a run, made once."""
        record = self._record(evaluation)
        known = record.get("solvers", {}).get(one.key)
        if known is not None:
            return dict(known)
        pair = (self._intervals(evaluation, evaluation.inside), self._intervals(evaluation, one))
        found = compare_solvers(*pair, samples=self.models.preset.solver_samples)
        record.setdefault("solvers", {})[one.key] = found
        self.models.store.save_evaluation(evaluation.key, record)
        return found

    def training(self, evaluation: Evaluation, /) -> list[dict[str, Any] | None]:
        """How the networks of a run were trained."""
        return list(self._record(evaluation).get("training", []))

    def reread(self, evaluation: Evaluation, /) -> None:
        """Forget the numbers of a run, which another process has stored anew."""
        self._records.pop(evaluation.key, None)

    def _record(self, evaluation: Evaluation) -> dict[str, Any]:
        if evaluation.key not in self._records:
            self._records[evaluation.key] = self.models.store.evaluation(evaluation.key)
        return self._records[evaluation.key]

    def _numbers(self, evaluation: Evaluation, one: EvaluationSet, hartley: bool) -> Numbers:
        inside = self._assess_inside(evaluation, hartley)
        if one == evaluation.inside:
            assessment, made = inside, self._time(evaluation)
        else:
            assessment = self.assess(evaluation, one, hartley=hartley)
            made = measure.detection_numbers(inside, assessment)
        if one.name.removesuffix("-c") == evaluation.id_set:
            made |= measure.prediction_numbers(assessment, self.models.images.labels(evaluation.id_set))
        return made

    def _assess_inside(self, evaluation: Evaluation, hartley: bool) -> Assessment:
        """The test set's scores, kept while the other sets of the same run are compared with them."""
        if self._inside is None or self._inside[:2] != (evaluation.key, hartley):
            self._inside = evaluation.key, hartley, self.assess(evaluation, evaluation.inside, hartley=hartley)
        return self._inside[2]

    def _intervals(self, evaluation: Evaluation, one: EvaluationSet) -> tuple[Array, Array]:
        lower, upper = probability_intervals(self.members(evaluation, one))
        if evaluation.J is not None:
            lower, upper = approximate_intervals(lower, upper, evaluation.J)
        return lower, upper

    def _time(self, evaluation: Evaluation) -> Numbers:
        """Milliseconds for each input of PIA and both entropies, on one thread."""
        if evaluation.J is None or evaluation.ensemble.dirichlet:
            return {}
        lower, upper = probability_intervals(self.members(evaluation, evaluation.inside))
        begun = time.perf_counter()
        reduced = approximate_intervals(lower, upper, evaluation.J)
        upper_entropy(*reduced, threads=1)
        lower_entropy(*reduced, threads=1)
        return {"credal.time_ms": 1000 * (time.perf_counter() - begun) / len(lower)}

    def _summed(self, ensemble: Ensemble) -> bool:
        """Whether only sums over its samples are stored."""
        return self.models.preset.keep < ensemble.N and ensemble.samples > 1

    def _fingerprint(self, ensemble: Ensemble, one: EvaluationSet) -> str | None:
        """Of all predictions behind a number; None where they are not at hand (only the numbers were kept)."""
        key = (ensemble.key, one.key)
        if key not in self._fingerprints:
            parts = [self._one_fingerprint(spec_key(spec), one.key, self._summed(ensemble)) for spec in ensemble.specs]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            self._fingerprints[key] = hashlib.sha256("".join(known).encode()).hexdigest()[:16]
        return self._fingerprints[key]

    def _one_fingerprint(self, model: str, name: str, summed: bool) -> str | None:
        key = (model, f"{name}.summary" if summed else name)
        if key not in self._fingerprints:
            store = self.models.store
            found = (store.summary_fingerprint if summed else store.fingerprint)(model, name)
            if found is None:
                return None
            self._fingerprints[key] = found
        return self._fingerprints[key]


def _described(ensemble: Ensemble) -> dict[str, Any]:
    return {
        "method": ensemble.method,
        "N": ensemble.N,
        "seeds": ensemble.seeds,
        "specs": [spec.as_dict() for spec in ensemble.specs],
    }
