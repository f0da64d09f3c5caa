"""The runs behind a result: which networks, from which seeds, trained how, where and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from credalens_paper.pipeline.evaluate import Evaluation
from credalens_paper.pipeline.work import Workbench
from credalens_paper.training.spec import TrainSpec

__all__ = ["describe_runs"]

Record = dict[str, Any]


def describe_runs(work: Workbench, /) -> list[Record]:
    """For every kind of model that was looked at since the last time: its runs, and how it was trained."""
    kinds: dict[tuple[str, str, str, int], list[Evaluation]] = {}
    for run in work.take_touched():
        one = run.ensemble.specs[0]
        kinds.setdefault((one.data, one.backbone, run.ensemble.method, run.ensemble.N), []).append(run)
    described = [
        {"data": data, "backbone": backbone, "method": method, "N": N, **_training(work, runs)}
        for (data, backbone, method, N), runs in kinds.items()
    ]
    return [kind for kind in described if kind["trained"]]


def _training(work: Workbench, runs: Sequence[Evaluation]) -> Record:
    """Seeds of every run (of the teachers, for distilled networks) and what the training loop wrote down.

    Runs of which nothing is stored, because something is in their way, are not counted.
    """
    ensembles = {run.ensemble: run for run in runs if not work.whole(run.ensemble) or _stored(work, run)}
    records = {spec.key: record for run in ensembles.values() for spec, record in _records(work, run)}
    first = next(iter(records.values()), {})
    return {
        "runs": sum(work.whole(ensemble) for ensemble in ensembles),
        "diverged": sum(not work.whole(ensemble) for ensemble in ensembles),
        "seeds": [list(ensemble.specs[0].teachers) or ensemble.seeds for ensemble in ensembles],
        "trained": len(records),
        "seconds": round(sum(record["seconds"] for record in records.values()), 1),
        "schedule": first.get("schedule"),
        "provenance": first.get("provenance"),
    }


def _stored(work: Workbench, run: Evaluation) -> bool:
    """Whether a run was evaluated, or could be from its predictions."""
    samples = run.ensemble.samples
    predicted = (work.models.predicted(spec, run.inside, samples) for spec in run.ensemble.specs)
    return bool(work.evaluator.training(run)) or all(predicted)


def _records(work: Workbench, run: Evaluation) -> list[tuple[TrainSpec, Record]]:
    """From the evaluation, or from beside the predictions where there is none yet."""
    kept = work.evaluator.training(run) or [None] * len(run.ensemble.specs)
    found = [
        (spec, record or work.models.training_record(spec))
        for spec, record in zip(run.ensemble.specs, kept, strict=True)
    ]
    return [(spec, record) for spec, record in found if record is not None]
