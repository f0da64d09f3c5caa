"""What exactness changes, measured on stored predictions: the local solver run by run, PIA on every input."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.ensembles import EvaluationSet, ood_sets
from credalens_paper.experiments.own_entries import SOLVER_RUNS, Exactness
from credalens_paper.json_records import from_json, to_json
from credalens_paper.measures.exactness import WRONG, reduce_rows, reduction_effect, solve, solver_effect, solver_errors
from credalens_paper.pipeline.plan import Plan, Workbench
from credalens_paper.pipeline.runs import Run, intervals_of
from credalens_paper.results.records import ExactnessPart, ExactnessResult, ReductionRun, SolverRun

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
