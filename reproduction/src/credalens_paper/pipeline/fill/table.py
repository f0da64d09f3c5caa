"""From a declaration to its result: a table's cells with their runs and improvements; what exactness changes.

Exactness is measured on stored predictions: the local solver run by run, PIA on every input.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from credalens_paper.experiments.cell_keys import DIGITS, NEUTRAL, CellKey, better_side, is_better
from credalens_paper.experiments.ensembles import EvaluationSet, ood_sets
from credalens_paper.experiments.index import DESCRIPTIONS
from credalens_paper.experiments.own_entries import SOLVER_RUNS, Exactness, printed
from credalens_paper.experiments.paper_entries import DETECTION, Table
from credalens_paper.json_records import from_json, to_json
from credalens_paper.measures.cost import cpu_threads, measure_costs
from credalens_paper.measures.exactness import (
    WRONG,
    compare_solvers,
    reduce_rows,
    reduction_effect,
    solve,
    solver_effect,
    solver_errors,
)
from credalens_paper.pipeline.plan import Plan, Workbench
from credalens_paper.pipeline.runs import Run, intervals_of
from credalens_paper.results.records import (
    Cell,
    Difference,
    ExactnessPart,
    ExactnessResult,
    Improvement,
    PaperDifference,
    ReductionRun,
    Runs,
    SolverComparison,
    SolverRun,
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
    """The paired differences credal - classical, and in how many runs the credal number is the better one."""
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


Sets = tuple[EvaluationSet, ...]


def exactness_result(work: Workbench, entry: Exactness, /) -> ExactnessResult:
    """Both comparisons for every model whose predictions are stored or can be made; a reason for the others."""
    plans = [work.plan(cell, sets=ood_sets(work.job.preset)) for cell, _ in entry.models]
    work.make(plans)
    parts = tuple(_part(work, entry, *model, plan) for model, plan in zip(entry.models, plans, strict=True))
    return ExactnessResult(
        label=entry.label,
        kind="ours",
        description=entry.description,
        wrong_sizes=WRONG,
        parts=parts,
        **work.closing(plans, parts),
    )


def _part(work: Workbench, entry: Exactness, cell: CellKey, kept: tuple[int, ...], plan: Plan) -> ExactnessPart:
    about: dict[str, Any] = {"keys": cell, "substitutes": work.substitutes(cell), "missing": plan.missing or None}
    runs = work.whole_runs(plan)
    if not runs:
        return ExactnessPart(**about, reason=plan.reason)
    classes = runs[0].ensemble.specs[0].classes
    samples = entry.samples(classes, work.job.preset)
    sizes = [J for J in dict.fromkeys(work.job.preset.substitute("J", J) for J in kept) if classes > J]
    return ExactnessPart(
        **about,
        classes=classes,
        solver=tuple(_solved(work, run, plan.sets, samples) for run in runs[:SOLVER_RUNS]),
        reduction=tuple(_reduced(work, run, plan.sets, sizes) for run in runs),
    )


def _solved(work: Workbench, run: Run, sets: Sets, samples: int) -> SolverRun:
    """The solver on random inputs of every set of a run: errors set by set, detection pair by pair."""

    def make() -> dict[str, Any]:
        solved = {}
        for images in (run.inside, *sets):
            work.job.deadline.check()
            work.job.log(f"the paper's solver on {samples} inputs of {images.key}: {run.key}")
            rng = np.random.default_rng(zlib.crc32(f"{run.key} {images.key}".encode()))
            solved[images.name] = solve(intervals_of(work.job, run, images), samples, rng)
        inside = solved[run.inside.name]
        return {
            "sets": {name: to_json(solver_errors(rows)) for name, rows in solved.items()},
            "pairs": {images.name: to_json(solver_effect(inside, solved[images.name])) for images in sets},
        }

    stored = _once(work, run, sets, f"solver-{samples}", make)
    return from_json(SolverRun, {"seeds": run.ensemble.seeds, **stored})


def _reduced(work: Workbench, run: Run, sets: Sets, kept: Sequence[int]) -> ReductionRun:
    """PIA of both forms on all inputs of a run: J -> OOD set -> effect."""

    def make() -> dict[str, Any]:
        work.job.deadline.check()
        work.job.log(f"both forms of PIA: {run.key}")
        intervals = {images: intervals_of(work.job, run, images) for images in (run.inside, *sets)}
        effects: dict[str, Any] = {}
        for J in kept:
            rows = {images: reduce_rows(pair, J, threads=work.job.threads) for images, pair in intervals.items()}
            effects[str(J)] = {
                images.name: to_json(reduction_effect(rows[run.inside], rows[images])) for images in sets
            }
        return effects

    stored = _once(work, run, sets, f"pia-{'-'.join(map(str, kept))}", make)
    return from_json(ReductionRun, {"seeds": run.ensemble.seeds, "J": stored})


def _once(work: Workbench, run: Run, sets: Sets, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was made before of the same predictions, or made now and stored."""
    store, file = work.job.store, f"evaluations/{run.key}-{name}.json"
    specs = [spec.key for spec in run.ensemble.specs]
    prints = [store.fingerprint(spec, images.key) or "" for spec in specs for images in (run.inside, *sets)]
    today = hashlib.sha256("".join(prints).encode()).hexdigest()[:16]
    stored = store.read_json(file)
    if stored is None or stored["fingerprint"] != today:
        stored = {"fingerprint": today, "found": make()}
        store.write_json(file, stored)
    return dict(stored["found"])
