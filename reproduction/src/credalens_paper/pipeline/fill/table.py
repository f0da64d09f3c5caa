"""From a table's declaration to its result: every cell with its runs, every improvement with its sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from credalens_paper.experiments.cell_keys import DIGITS, NEUTRAL, CellKey, better_side, is_better
from credalens_paper.experiments.index import DESCRIPTIONS
from credalens_paper.experiments.own_entries import printed
from credalens_paper.experiments.paper_entries import DETECTION, Table
from credalens_paper.json_records import from_json, to_json
from credalens_paper.measures.cost import cpu_threads, measure_costs
from credalens_paper.measures.exactness import compare_solvers
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
    """Fill in a table: train, predict and evaluate what is missing, then all cells beside the paper's.

    `measures` ask for more credal cells in tables of OOD detection.
    """
    credal = [cell for cell in table.cells if cell.variant == "credal" and cell.metric in DETECTION and cell.J is None]
    added = (replace(cell, measure=measure) for cell in credal for measure in measures)
    asked = tuple(dict.fromkeys((*table.cells, *table.extra, *added)))
    plans: dict[CellKey, Plan] = {}
    filled: dict[CellKey, Filled] = {}
    if table.is_cost:
        for cell, costs in measure_costs(asked, work.job.preset, check=work.job.deadline.check).items():
            filled[cell] = Filled(reason=costs) if isinstance(costs, str) else Filled(dict(enumerate(costs)))
    else:  # all runs are planned before the first is made, so that a run can be stopped after a stage
        plans = {cell: work.plan(cell, many=table.many, regime=table.regime) for cell in asked}
        work.make(plans.values())
        for cell, plan in plans.items():
            values = work.values(plan)
            filled[cell] = Filled(values, plan.missing) if values else Filled(reason=plan.reason)
    cells = tuple(_cell(work, table, cell, values) for cell, values in filled.items())
    return TableResult(
        label=table.label,
        kind="table",
        description=DESCRIPTIONS[table.label],
        layout=table.layout,
        cells=cells,
        improvements=tuple(_improvements(table, filled)),
        solvers=tuple(_solvers(work, plans, filled)) if paper_solver else (),
        cpu_threads=cpu_threads(asked) if table.is_cost else None,
        paper_runs=printed(table).runs,
        **work.closing(plans.values(), cells),
    )


def _cell(work: Workbench, table: Table, key: CellKey, filled: Filled) -> Cell:
    substituted = work.substitutes(key)
    if table.is_cost:
        substituted.pop("backbone", None)  # nothing is trained, so nothing need stand in for it
    values = tuple(filled.runs.values())
    return Cell(
        keys=key,
        substitutes=substituted,
        paper=printed(table).cells.get(key),
        ours=replace(statistics(values), runs=values) if values else None,
        missing=filled.missing or None,
        reason=None if values else filled.reason,
    )


def statistics(values: Sequence[float], /) -> Runs:
    """Mean, standard deviation (of a sample, so None for one run) and number of runs."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Runs(float(np.mean(values)), spread, len(values))


def _improvements(table: Table, filled: Mapping[CellKey, Filled]) -> list[Improvement]:
    """Credal less classical over the runs that both have, where one of them can be the better one; and in the paper."""
    improvements, paper = [], printed(table).cells
    for key, credal in filled.items():
        if key.variant == "credal" and key.baseline in filled and key.metric not in NEUTRAL:
            classical = filled[key.baseline].runs
            pairs = [(classical[run], value) for run, value in credal.runs.items() if run in classical]
            ours = improvement(key.metric, *zip(*pairs, strict=True)) if pairs else None
            theirs = None
            if key in paper and key.baseline in paper:
                difference = round(paper[key].mean - paper[key.baseline].mean, 6)
                theirs = PaperDifference(difference, better_side(key.metric, difference))
            improvements.append(Improvement(keys=key, paper=theirs, ours=ours))
    return improvements


def improvement(metric: str, classical: Sequence[float], credal: Sequence[float], /) -> Difference:
    """The paired differences credal - classical, and in how many runs the credal number is the better one.

    >>> improvement("ECE", [0.5, 0.5], [0.25, 0.75]).wins
    1
    """
    # Sums in another order differ in the last bits.
    differences = np.round(np.subtract(credal, classical), DIGITS).tolist()
    wins, whole = sum(is_better(metric, difference) for difference in differences), statistics(differences)
    return Difference(whole.mean, whole.std, whole.n, wins, better_side(metric, whole.mean))


def _solvers(
    work: Workbench, plans: Mapping[CellKey, Plan], filled: Mapping[CellKey, Filled]
) -> list[SolverComparison]:
    """The paper's solver beside the exact measures, on a subsample of the first run of every model and OOD set."""
    comparisons: dict[tuple[str, str], SolverComparison] = {}
    for key, plan in plans.items():
        if key.variant != "credal" or key.metric != "AUROC" or key.ood_set is None or not filled[key].runs:
            continue
        run, outside = plan.runs[0], plan.sets[0]
        place = (run.key, outside.key)
        if work.job.preset.keep < run.ensemble.N or outside.corruption or place in comparisons:
            continue
        work.job.deadline.check()
        work.make([Plan(runs=(run,), sets=(outside,), available=(run,))])
        record = work.evaluator.record(run)
        stored = record.setdefault("solvers", {})
        if outside.key not in stored:
            intervals = (intervals_of(work.job, run, images) for images in (run.inside, outside))
            errors, effect = compare_solvers(*intervals, samples=work.job.preset.solver_samples)
            stored[outside.key] = {**to_json(errors), **to_json(effect)}
            work.job.store.write_json(f"evaluations/{run.key}.json", record)
        keys = {name: value for name, value in key.as_dict().items() if name not in ("measure", "metric", "variant")}
        comparisons[place] = from_json(SolverComparison, {"keys": keys, "run": 0, **stored[outside.key]})
    return list(comparisons.values())
