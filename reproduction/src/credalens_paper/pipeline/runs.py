"""The third step: a run is one ensemble measured in one way; its numbers are stored in a file, with an entry for each set."""

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

from credalens import approximate_intervals, lower_entropy, probability_intervals, upper_entropy
from credalens.checks.options import count_text
from credalens_paper.experiments.cell_keys import GUARD_METRICS
from credalens_paper.experiments.ensembles import Ensemble, EvaluationSet
from credalens_paper.experiments.paper_entries import DETECTION
from credalens_paper.json_records import to_json
from credalens_paper.measures import assessment
from credalens_paper.measures.assessment import NO_EXTRAS, Assessment, Extras
from credalens_paper.measures.guarding import Halves, kept_numbers, turned_away_numbers
from credalens_paper.origin import hardware
from credalens_paper.pipeline.engines import is_summed, stored_summary, training_record
from credalens_paper.pipeline.job import Job

Array = NDArray[Any]
Numbers = dict[str, float]


@dataclass(frozen=True)
class Run:
    """One ensemble, with the classes that PIA keeps, or with an overconfident member."""

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


def stored_members(job: Job, ensemble: Ensemble, images: EvaluationSet, /) -> Array:
    """Predictions of an ensemble, (N, inputs, classes)."""
    parts = []
    for spec in ensemble.specs:
        stored = job.store.predictions(spec.key, images.key, ensemble.samples)
        if stored is None:
            raise FileNotFoundError(
                f"{count_text(ensemble.samples, 'prediction')} of {spec.key} on {images.key}: not stored; run without "
                "--only-train first"
            )
        parts.append(stored)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def members_of(job: Job, run: Run, images: EvaluationSet, /) -> Array:
    """The members' predictions, one of them made overconfident where the run says so."""
    members = stored_members(job, run.ensemble, images)
    if run.regime != "overconfident":
        return members
    rng = np.random.default_rng(zlib.crc32(f"{run.key} {images.key}".encode()))
    return assessment.overconfident(members, rng)


def intervals_of(job: Job, run: Run, images: EvaluationSet, /) -> tuple[Array, Array]:
    """The bounds of the credal sets, of the classes that PIA keeps."""
    lower, upper = probability_intervals(members_of(job, run, images), threads=job.threads)
    return (lower, upper) if run.J is None else tuple(approximate_intervals(lower, upper, run.J))


def assess(job: Job, run: Run, images: EvaluationSet, /, *, extras: Extras = NO_EXTRAS) -> Assessment:
    """Scores and point predictions."""
    options: dict[str, Any] = {"extras": extras, "threads": job.threads}
    if run.ensemble.dirichlet:
        return assessment.assess_concentrations(stored_members(job, run.ensemble, images)[0])
    if is_summed(job, run.ensemble):
        summary = stored_summary(job, run.ensemble.specs[0], images)
        if summary is None:
            raise FileNotFoundError(f"no predictions of {run.ensemble.specs[0].key} on {images.key}")
        return assessment.assess_summary(summary, **options)
    return assessment.assess_members(members_of(job, run, images), J=run.J, **options)


@dataclass(eq=False)
class Evaluator:
    """Evaluates runs into the store, set by set; numbers of other predictions than the stored ones are made again."""

    job: Job
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    _fingerprints: dict[tuple[str, str, bool], str] = field(default_factory=dict)
    _inside: tuple[str, Extras, Assessment] | None = None

    def numbers(self, run: Run, images: EvaluationSet, names: Iterable[str], /) -> Numbers | None:
        """The stored numbers of a run on a set, if all names are among them and they are of today's predictions."""
        entry = self.record(run).get("sets", {}).get(images.key)
        if entry is None or not set(names) <= entry["numbers"].keys():
            return None
        today = self._fingerprint(run.ensemble, images)
        return dict(entry["numbers"]) if today in (None, entry["fingerprint"]) else None

    def evaluate(self, run: Run, sets: Iterable[EvaluationSet], names: frozenset[str], /) -> None:
        """Make the missing numbers, with the scores, trimmed sets and groups that `names` ask for."""
        record, ensemble = self.record(run), run.ensemble
        specs = [spec.as_dict() for spec in ensemble.specs]
        described = {"method": ensemble.method, "N": ensemble.N, "seeds": ensemble.seeds, "specs": specs}
        record |= {"ensemble": described, "hardware": to_json(hardware())}
        record["training"] = [training_record(self.job, spec) for spec in ensemble.specs]
        stored = record.setdefault("sets", {})
        try:
            for images in sets:
                self.job.deadline.check()
                fingerprint = self._fingerprint(ensemble, images)
                before = stored.get(images.key, {"fingerprint": None, "numbers": {}})
                kept = before["numbers"] if before["fingerprint"] == fingerprint else {}
                stored[images.key] = {"fingerprint": fingerprint, "numbers": kept | self._numbers(run, images, names)}
        finally:
            self.job.store.write_json(f"evaluations/{run.key}.json", record)

    def record(self, run: Run, /) -> dict[str, Any]:
        """Everything that is stored about a run; empty where it was not evaluated."""
        if run.key not in self.records:
            self.records[run.key] = self.job.store.read_json(f"evaluations/{run.key}.json") or {}
        return self.records[run.key]

    def _fingerprint(self, ensemble: Ensemble, images: EvaluationSet) -> str | None:
        """Of all predictions behind a number, each looked up once, as soon as it is there; None where one is not."""
        store, summed, parts = self.job.store, is_summed(self.job, ensemble), []
        for spec in ensemble.specs:
            key = (spec.key, images.key, summed)
            if key not in self._fingerprints:
                found = (store.summary_fingerprint if summed else store.fingerprint)(spec.key, images.key)
                if found is None:  # only the numbers were kept
                    return None
                self._fingerprints[key] = found
            parts.append(self._fingerprints[key])
        return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]

    def _numbers(self, run: Run, images: EvaluationSet, names: frozenset[str]) -> Numbers:
        """Those that are made of any predictions, and those that take long only where one of their metrics is asked for."""
        metrics, extras = {name.rpartition(".")[2] for name in names}, Extras.of(names)
        if self._inside is None or self._inside[:2] != (run.key, extras):  # kept while other sets are compared with it
            self._inside = run.key, extras, assess(self.job, run, run.inside, extras=extras)
        inside = self._inside[2]
        found = inside if images == run.inside else assess(self.job, run, images, extras=extras)
        numbers = assessment.mean_numbers(inside) | self._time(run) if found is inside else {}
        if images.name.removesuffix("-c") == run.id_set:
            numbers |= assessment.prediction_numbers(found, self.job.images.labels(run.id_set)[images.rows])
        if (
            metrics & set(DETECTION) and found is not inside
        ):  # sorts the scores of two sets, which takes longer than all else
            numbers |= assessment.detection_numbers(inside, found)
        if metrics & GUARD_METRICS:
            labels = self.job.images.labels(run.id_set)[run.inside.rows]
            # Other halves for another run, so that the spread over runs is theirs too.
            halves = Halves(zlib.crc32(run.key.encode()), self.job.preset.repeats)
            if found is inside:
                numbers |= kept_numbers(inside, labels, halves)
            else:
                numbers |= turned_away_numbers(inside, found, labels, halves)
        return numbers

    def _time(self, run: Run) -> Numbers:
        """Milliseconds for each input of PIA and both entropies, on one thread."""
        if run.J is None or run.ensemble.dirichlet:
            return {}
        lower, upper = probability_intervals(members_of(self.job, run, run.inside))
        begun = time.perf_counter()
        reduced = approximate_intervals(lower, upper, run.J)
        upper_entropy(*reduced, threads=1)
        lower_entropy(*reduced, threads=1)
        return {"credal.time_ms": 1000 * (time.perf_counter() - begun) / len(lower)}


def evaluate_all(evaluator: Evaluator, wanted: list[tuple[Run, list[EvaluationSet], frozenset[str]]], /) -> None:
    """Store the numbers of these names of these runs on these sets."""
    job = evaluator.job
    if job.engine.pool is not None:
        job.engine.pool.each(job, _evaluate, wanted, on_device=False)
        for run, _, _ in wanted:
            evaluator.records.pop(run.key, None)  # another process has stored it anew
        return
    for done, (run, sets, names) in enumerate(wanted, start=1):
        job.log(f"evaluating {run.key} ({done} of {len(wanted)})")
        evaluator.evaluate(run, sets, names)


def _evaluate(job: Job, work: tuple[Run, list[EvaluationSet], frozenset[str]], /) -> None:
    job.log(f"evaluating {work[0].key}")
    Evaluator(job).evaluate(*work)
