"""The third step: numbers of stored predictions, one file for each run, one entry for each set."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from credalens.core.entropy import lower_entropy, upper_entropy
from credalens.core.intervals import approximate_intervals, probability_intervals
from credalens_paper.experiments.ensembles import Ensemble, EvaluationSet, spec_key
from credalens_paper.json_records import to_json
from credalens_paper.measures.assessment import Assessment, Extras, detection_numbers, mean_numbers, prediction_numbers
from credalens_paper.measures.guarding import Halves, kept_numbers, turned_away_numbers
from credalens_paper.pipeline.job import Job
from credalens_paper.pipeline.predict_missing import is_summed, training_record
from credalens_paper.pipeline.runs import Run, assess, members_of
from credalens_paper.results.provenance import hardware
from credalens_paper.results.records import Hardware

Numbers = dict[str, float]
Work = tuple[Run, list[EvaluationSet], frozenset[str]]


def evaluate_all(evaluator: Evaluator, wanted: list[Work], /) -> None:
    """Store the numbers of these names of these runs on these sets."""
    job = evaluator.job
    if job.engine.pool is not None:
        job.engine.pool.each(job, _evaluate, wanted, on_device=False)
        for run, _, _ in wanted:
            evaluator.forget(run)
        return
    for done, (run, sets, names) in enumerate(wanted, start=1):
        job.log(f"evaluating {run.key} ({done} of {len(wanted)})")
        evaluator.evaluate(run, sets, names)


def _evaluate(job: Job, work: Work, /) -> None:
    job.log(f"evaluating {work[0].key}")
    Evaluator(job).evaluate(*work)


@dataclass(eq=False)
class Evaluator:
    """Evaluates runs into the store, set by set; numbers of other predictions than the stored ones are made again."""

    job: Job
    _records: dict[str, dict[str, Any]] = field(default_factory=dict)
    _fingerprints: dict[tuple[str, str, bool], str] = field(default_factory=dict)
    _inside: tuple[str, Extras, Assessment] | None = None

    def numbers(self, run: Run, images: EvaluationSet, names: Iterable[str], /) -> Numbers | None:
        """The stored numbers of a run on a set, if all names are among them and they are of today's predictions."""
        entry = self._record(run).get("sets", {}).get(images.key)
        if entry is None or not set(names) <= entry["numbers"].keys():
            return None
        today = self.fingerprint(run.ensemble, images)
        return dict(entry["numbers"]) if today in (None, entry["fingerprint"]) else None

    def evaluate(self, run: Run, sets: Iterable[EvaluationSet], names: frozenset[str], /) -> None:
        """Make the missing numbers, with the scores, trimmed sets and detection that `names` ask for."""
        extras = Extras.of(names)
        record = self._record(run)
        record |= {"ensemble": _described(run.ensemble), "hardware": to_json(hardware())}
        record["training"] = [training_record(self.job, spec) for spec in run.ensemble.specs]
        stored = record.setdefault("sets", {})
        try:
            for images in sets:
                self.job.deadline.check()
                fingerprint = self.fingerprint(run.ensemble, images)
                before = stored.get(images.key, {"fingerprint": None, "numbers": {}})
                kept = before["numbers"] if before["fingerprint"] == fingerprint else {}
                numbers = kept | self._numbers(run, images, extras)
                stored[images.key] = {"fingerprint": fingerprint, "numbers": numbers}
        finally:
            self.job.store.write_json(f"evaluations/{run.key}.json", record)

    def once(self, run: Run, part: str, name: str, make: Callable[[], Any], /) -> Any:
        """Something else about a run, from the store or made now."""
        record = self._record(run)
        parts = record.setdefault(part, {})
        if name not in parts:
            parts[name] = make()
            self.job.store.write_json(f"evaluations/{run.key}.json", record)
        return parts[name]

    def training(self, run: Run, /) -> list[dict[str, Any] | None]:
        """How the networks of a run were trained; from beside the predictions where it was not evaluated yet."""
        records = self._record(run).get("training") or [None] * len(run.ensemble.specs)
        specs = run.ensemble.specs
        return [record or training_record(self.job, spec) for spec, record in zip(specs, records, strict=True)]

    def hardware(self, run: Run, /) -> Hardware | None:
        """The processor that evaluated a run; None where that is not known."""
        stored = self._record(run).get("hardware")
        return None if stored is None else Hardware(**stored)

    def is_evaluated(self, run: Run, /) -> bool:
        """Whether any number of the run is stored."""
        return "training" in self._record(run)

    def forget(self, run: Run, /) -> None:
        """Forget the numbers of a run, which another process has stored anew."""
        self._records.pop(run.key, None)

    def fingerprint(self, ensemble: Ensemble, images: EvaluationSet, /) -> str | None:
        """Of all predictions behind a number; None where they are not there (only the numbers were kept)."""
        parts = [
            self._fingerprint(spec_key(spec), images.key, is_summed(self.job, ensemble)) for spec in ensemble.specs
        ]
        stored = [part for part in parts if part is not None]
        return hashlib.sha256("".join(stored).encode()).hexdigest()[:16] if len(stored) == len(parts) else None

    def _fingerprint(self, model: str, name: str, summed: bool) -> str | None:
        """Looked up once, as soon as it is there."""
        if (model, name, summed) not in self._fingerprints:
            store = self.job.store
            stored = store.summary_fingerprint(model, name) if summed else store.fingerprint(model, name)
            if stored is None:
                return None
            self._fingerprints[model, name, summed] = stored
        return self._fingerprints[model, name, summed]

    def _record(self, run: Run) -> dict[str, Any]:
        if run.key not in self._records:
            self._records[run.key] = self.job.store.read_json(f"evaluations/{run.key}.json") or {}
        return self._records[run.key]

    def _numbers(self, run: Run, images: EvaluationSet, extras: Extras) -> Numbers:
        inside = self._assess_inside(run, extras)
        if images == run.inside:
            assessment, numbers = inside, mean_numbers(inside) | self._time(run)
        else:
            assessment = assess(self.job, run, images, extras=extras)
            numbers = detection_numbers(inside, assessment) if extras.detection else {}
            if extras.guards:
                numbers |= turned_away_numbers(inside, assessment, self._labels(run, run.inside), self._halves(run))
        if images.name.removesuffix("-c") == run.id_set:
            labels = self._labels(run, images)
            numbers |= prediction_numbers(assessment, labels)
            if extras.guards and images == run.inside:
                numbers |= kept_numbers(assessment, labels, self._halves(run))
        return numbers

    def _labels(self, run: Run, images: EvaluationSet) -> Any:
        """Of a test set of the training data, or of a part of it."""
        return self.job.images.labels(run.id_set)[images.rows]

    def _halves(self, run: Run) -> Halves:
        """Of the test inputs, for guards; other ones for another run, so that the spread over runs is theirs too."""
        return Halves(zlib.crc32(run.key.encode()), self.job.preset.repeats)

    def _assess_inside(self, run: Run, extras: Extras) -> Assessment:
        """The test set's scores, kept while the other sets of the same run are compared with them."""
        if self._inside is None or self._inside[:2] != (run.key, extras):
            self._inside = run.key, extras, assess(self.job, run, run.inside, extras=extras)
        return self._inside[2]

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


def _described(ensemble: Ensemble) -> dict[str, Any]:
    return {
        "method": ensemble.method,
        "N": ensemble.N,
        "seeds": ensemble.seeds,
        "specs": [spec.as_dict() for spec in ensemble.specs],
    }
