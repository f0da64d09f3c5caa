"""From a table's declaration to its result: every cell with its runs, every improvement with its sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from credalens_paper.experiments.beyond import BESIDE
from credalens_paper.experiments.cell_keys import HIGHER, NEUTRAL, CellKey, better_side
from credalens_paper.experiments.tables import DETECTION, Table
from credalens_paper.json_records import from_json, to_json
from credalens_paper.measures.cost import cpu_threads, measure_costs
from credalens_paper.measures.solver import compare_solvers
from credalens_paper.pipeline.fill.result_facts import closing, substitutes
from credalens_paper.pipeline.plan import Plan, Workbench
from credalens_paper.pipeline.runs import intervals_of
from credalens_paper.results.records import (
    Cell,
    Difference,
    Improvement,
    PaperDifference,
    Runs,
    SolverComparison,
    TableResult,
)


@dataclass(frozen=True)
class Filled:
    """The numbers of a cell by run, why some are missing, and why there are none at all."""

    runs: Mapping[Any, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def table_result(
    work: Workbench, table: Table, /, *, measures: Sequence[str] = (), paper_solver: bool = False
) -> TableResult:
    """Fill in a table: train, predict and evaluate what is missing, then all cells beside the paper's."""
    asked = (*table.cells, *table.extra, *_on_request(table, measures))
    plans: dict[CellKey, Plan] = {}
    if table.is_cost:
        filled = _fill_costs(work, asked)
    else:  # all runs are planned before the first is made, so that a run can be stopped after a stage
        plans = {cell: work.plan(cell, many=table.many, regime=table.regime) for cell in asked}
        work.make(plans.values())
        filled = {cell: _fill(work, plan) for cell, plan in plans.items()}
    cells = tuple(_cell(work, table, cell, values) for cell, values in filled.items())
    return TableResult(
        label=table.label,
        kind="table",
        description=BESIDE[table.label].description,
        layout=table.layout,
        cells=cells,
        improvements=tuple(_improvements(table, filled)),
        solvers=tuple(_solvers(work, plans, filled)) if paper_solver else (),
        cpu_threads=cpu_threads(asked) if table.is_cost else None,
        paper_runs=BESIDE[table.label].runs,
        **closing(work, plans.values(), cells),
    )


def _on_request(table: Table, measures: Sequence[str]) -> tuple[CellKey, ...]:
    """More credal cells by other measures, for tables of OOD detection."""
    credal = [cell for cell in table.cells if cell.variant == "credal" and cell.metric in DETECTION and cell.J is None]
    added = {replace(cell, measure=measure): None for cell in credal for measure in measures}
    return tuple(cell for cell in added if cell not in {*table.cells, *table.extra})


def _fill_costs(work: Workbench, asked: Sequence[CellKey]) -> dict[CellKey, Filled]:
    costs = measure_costs(asked, work.job.preset, check=work.job.deadline.check)
    return {
        cell: Filled(reason=values) if isinstance(values, str) else Filled(dict(enumerate(values)))
        for cell, values in costs.items()
    }


def _fill(work: Workbench, plan: Plan) -> Filled:
    values = work.values(plan)
    return Filled(values, plan.missing) if values else Filled(reason=plan.reason)


def _cell(work: Workbench, table: Table, key: CellKey, filled: Filled) -> Cell:
    substituted = substitutes(work, key)
    if table.is_cost:
        substituted.pop("backbone", None)  # nothing is trained, so nothing need stand in for it
    values = tuple(filled.runs.values())
    return Cell(
        keys=key,
        substitutes=substituted,
        paper=BESIDE[table.label].cells.get(key),
        ours=replace(statistics(values), runs=values) if values else None,
        missing=filled.missing or None,
        reason=None if values else filled.reason,
    )


def statistics(values: Sequence[float], /) -> Runs:
    """Mean, standard deviation (of a sample, so None for one run) and number of runs.

    >>> statistics([1.0, 3.0])
    Runs(mean=2.0, std=1.4142135623730951, n=2, runs=())
    """
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Runs(float(np.mean(values)), spread, len(values))


def _improvements(table: Table, filled: Mapping[CellKey, Filled]) -> list[Improvement]:
    """Credal less classical over the runs that both have, where one of them can be the better one."""
    improvements = []
    for key, credal in filled.items():
        if key.variant == "credal" and key.baseline in filled and key.metric not in NEUTRAL:
            classical = filled[key.baseline].runs
            pairs = [(classical[run], value) for run, value in credal.runs.items() if run in classical]
            ours = improvement(key.metric, *zip(*pairs, strict=True)) if pairs else None
            improvements.append(Improvement(keys=key, paper=_paper_improvement(table.label, key), ours=ours))
    return improvements


def improvement(metric: str, classical: Sequence[float], credal: Sequence[float], /) -> Difference:
    """The paired differences credal - classical, and in how many runs the credal number is the better one.

    >>> improvement("ECE", [0.5, 0.5], [0.25, 0.75]).wins
    1
    """
    differences = np.round(np.subtract(credal, classical), 12)  # sums in another order differ in the last bits
    wins = int((differences > 0 if metric in HIGHER else differences < 0).sum())
    whole = statistics(differences.tolist())
    return Difference(whole.mean, whole.std, whole.n, wins, better_side(metric, float(differences.mean())))


def _paper_improvement(label: str, key: CellKey) -> PaperDifference | None:
    cells = BESIDE[label].cells
    credal, classical = cells.get(key), cells.get(key.baseline)
    if credal is None or classical is None:
        return None
    difference = round(credal.mean - classical.mean, 6)
    return PaperDifference(difference, better_side(key.metric, difference))


def _solvers(
    work: Workbench, plans: Mapping[CellKey, Plan], filled: Mapping[CellKey, Filled]
) -> list[SolverComparison]:
    """The paper's solver beside the exact measures, on a subsample of the first run of every model and OOD set."""
    comparisons: dict[tuple[str, str], SolverComparison] = {}
    for key, plan in plans.items():
        if key.variant != "credal" or key.metric != "AUROC" or key.ood_set is None or not filled[key].runs:
            continue
        run, outside = plan.runs[0], plan.sets[0]
        if (
            work.job.preset.keep >= run.ensemble.N
            and not outside.corruption
            and (run.key, outside.key) not in comparisons
        ):
            work.job.deadline.check()
            work.make([Plan(runs=(run,), sets=(outside,), available=(run,))])
            keys = {
                name: value for name, value in key.as_dict().items() if name not in ("measure", "metric", "variant")
            }
            comparisons[run.key, outside.key] = _compare_solvers(work, plan, keys)
    return list(comparisons.values())


def _compare_solvers(work: Workbench, plan: Plan, keys: Mapping[str, Any]) -> SolverComparison:
    run, outside = plan.runs[0], plan.sets[0]

    def make() -> dict[str, Any]:
        intervals = (intervals_of(work.job, run, images) for images in (run.inside, outside))
        errors, effect = compare_solvers(*intervals, samples=work.job.preset.solver_samples)
        return {**to_json(errors), **to_json(effect)}

    stored = work.evaluator.once(run, "solvers", outside.key, make)
    return from_json(SolverComparison, {"keys": keys, "run": 0, **stored})
