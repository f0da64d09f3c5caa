"""What closes every result: the networks behind it, whether all of it is measured, and where it was put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.ensembles import Ensemble
from credalens_paper.pipeline.plan import Plan, Workbench
from credalens_paper.pipeline.predict_missing import is_predicted
from credalens_paper.pipeline.runs import Run
from credalens_paper.pipeline.train_missing import is_whole
from credalens_paper.results.provenance import make_provenance
from credalens_paper.results.records import Part, TrainedModels, status_of


def substitutes(work: Workbench, cell: CellKey, /) -> dict[str, Any]:
    """The keys of a cell that the preset puts something else in the place of."""
    keys, measured = cell.as_dict(), work.job.preset.substituted(cell).as_dict()
    return {key: value for key, value in measured.items() if value != keys[key]}


def closing(work: Workbench, plans: Iterable[Plan], parts: tuple[Part, ...], /) -> dict[str, Any]:
    """The last fields of a result: models, status, provenance."""
    return {
        "models": _describe_models(work, plans),
        "status": status_of(parts),
        "provenance": make_provenance(work.job.preset, work.job.engine.about()),
    }


def _describe_models(work: Workbench, plans: Iterable[Plan]) -> tuple[TrainedModels, ...]:
    """For every kind of model in some plans its runs, and how its networks were trained."""
    kinds: dict[tuple[str, str, str, int], dict[Ensemble, Run]] = {}
    for run in dict.fromkeys(run for plan in plans for run in plan.runs):
        first = run.ensemble.specs[0]
        kind = (first.data, first.backbone, run.ensemble.method, run.ensemble.N)
        if not is_whole(work.job, run.ensemble) or _is_stored(work, run):
            kinds.setdefault(kind, {})[run.ensemble] = run
    described = (_describe(work, kind, runs) for kind, runs in kinds.items())
    return tuple(models for models in described if models.trained)


def _describe(work: Workbench, kind: tuple[str, str, str, int], runs: Mapping[Ensemble, Run]) -> TrainedModels:
    """Seeds of every run (of the teachers, for distilled networks) and what the training loop wrote down."""
    records: dict[str, dict[str, Any]] = {}
    for ensemble, run in runs.items():
        pairs = zip(ensemble.specs, work.evaluator.training(run), strict=True)
        records |= {spec.key: record for spec, record in pairs if record is not None}
    first, whole = next(iter(records.values()), {}), sum(is_whole(work.job, ensemble) for ensemble in runs)
    data, backbone, method, N = kind
    machines = dict.fromkeys(work.evaluator.hardware(run) for run in runs.values())
    return TrainedModels(
        data=data,
        backbone=backbone,
        method=method,
        N=N,
        runs=whole,
        diverged=len(runs) - whole,
        seeds=tuple(ensemble.specs[0].teachers or tuple(ensemble.seeds) for ensemble in runs),
        trained=len(records),
        seconds=round(sum(record["seconds"] for record in records.values()), 3),
        schedule=first.get("schedule"),
        provenance=first.get("provenance"),
        evaluated=tuple(machine for machine in machines if machine is not None) or None,
    )


def _is_stored(work: Workbench, run: Run) -> bool:
    """Whether a run was evaluated, or could be from its predictions."""
    predicted = (is_predicted(work.job, spec, run.inside, run.ensemble.samples) for spec in run.ensemble.specs)
    return work.evaluator.is_evaluated(run) or all(predicted)
