"""What exactness changes, measured on stored predictions: the local solver run by run, PIA on every input."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.core.intervals import probability_intervals
from credalens_paper.experiments.cells import CellKey, EvaluationSet, evaluation_sets, spec_key
from credalens_paper.experiments.exactness import OWN, Exactness
from credalens_paper.measures.reduction import detection_by_reduction, reduce_rows
from credalens_paper.measures.solver import WRONG, detection_by_solver, solve, solver_errors
from credalens_paper.pipeline.evaluate import Evaluation
from credalens_paper.pipeline.tables import ALL, about_cell, at_hand
from credalens_paper.pipeline.work import Need, Workbench

__all__ = ["exactness_result"]

Record = dict[str, Any]
Sets = tuple[EvaluationSet, ...]
Bounds = tuple[NDArray[np.floating], NDArray[np.floating]]


def exactness_result(work: Workbench, entry: Exactness, /) -> Record:
    """Both comparisons for every model whose predictions are stored or can be made; a reason for the others."""
    sets = tuple(one for name in entry.ood_sets for one in evaluation_sets(name, work.preset))
    plans = [(cell, kept, *_at_hand(work, cell, sets)) for cell, kept in entry.models]
    work.predict([(run.ensemble, (run.inside, *sets)) for _, _, runs, _ in plans for run in runs])
    parts = []
    for cell, kept, runs, missing in plans:
        whole = [run for run in runs if work.whole(run.ensemble)]
        part = about_cell(work, cell) | ({"missing": missing} if missing else {})
        parts.append(part | (_part(work, entry, whole, sets, kept) if whole else _nothing(missing, len(runs))))
    return {
        "label": entry.label,
        "kind": "ours",
        "description": OWN[entry.label],
        "wrong_sizes": list(WRONG),
        "parts": parts,
    }


def _at_hand(work: Workbench, cell: CellKey, sets: Sets) -> tuple[list[Evaluation], dict[str, str]]:
    """The runs that are stored or can be made, and why the others are not."""
    reason = work.excluded(cell)
    if reason is not None:
        return [], {ALL: reason}
    found, missing = at_hand(work, [Need(run, (run.inside, *sets), "") for run in work.runs(cell)])
    return [need.evaluation for need in found], missing


def _nothing(missing: Mapping[str, str], runs: int) -> Record:
    return {"reason": next(iter(missing.values()), f"all {runs} runs diverged")}


def _part(work: Workbench, entry: Exactness, runs: Sequence[Evaluation], sets: Sets, kept: tuple[int, ...]) -> Record:
    classes = runs[0].ensemble.specs[0].classes
    samples = entry.samples(classes, work.preset)
    sizes = dict.fromkeys(work.preset.substitute("J", J) for J in kept)
    solved = [_solved(work, run, sets, samples) for run in runs[: entry.solver_runs]]
    reduced = [_reduced(work, run, sets, tuple(J for J in sizes if classes > J)) for run in runs]
    return {"classes": classes, "solver": solved, "reduction": reduced}


def _solved(work: Workbench, run: Evaluation, sets: Sets, samples: int) -> Record:
    """The solver on random inputs of every set of a run: errors set by set, detection pair by pair."""

    def make() -> Record:
        found = {}
        for one in (run.inside, *sets):
            work.models.deadline.check()
            work.models.log(f"the paper's solver on {samples} inputs of {one.key}: {run.key}")
            rng = np.random.default_rng(zlib.crc32(f"{run.key} {one.key}".encode()))
            found[one.name] = solve(_bounds(work, run, one), samples, rng)
        inside = found[run.inside.name]
        return {
            "sets": {name: solver_errors(solved) for name, solved in found.items()},
            "pairs": {one.name: detection_by_solver(inside, found[one.name]) for one in sets},
        }

    return {"seeds": run.ensemble.seeds, **_once(work, run, sets, f"solver-{samples}", make)}


def _reduced(work: Workbench, run: Evaluation, sets: Sets, kept: tuple[int, ...]) -> Record:
    """PIA of both forms on all inputs of a run: J -> OOD set -> numbers."""

    def make() -> Record:
        work.models.deadline.check()
        work.models.log(f"both forms of PIA: {run.key}")
        bounds = {one: _bounds(work, run, one) for one in (run.inside, *sets)}
        found: Record = {}
        for J in kept:
            rows = {one: reduce_rows(bound, J, threads=work.evaluator.threads) for one, bound in bounds.items()}
            found[str(J)] = {one.name: detection_by_reduction(rows[run.inside], rows[one]) for one in sets}
        return found

    name = f"pia-{'-'.join(map(str, kept))}"
    return {"seeds": run.ensemble.seeds, "J": _once(work, run, sets, name, make)}


def _bounds(work: Workbench, run: Evaluation, one: EvaluationSet) -> Bounds:
    lower, upper = probability_intervals(work.evaluator.members(run, one), threads=work.evaluator.threads)
    return lower, upper


def _once(work: Workbench, run: Evaluation, sets: Sets, name: str, make: Callable[[], Record]) -> Record:
    """What was made before of the same predictions, or made now and stored."""
    store, key = work.models.store, f"{run.key}-{name}"
    specs = [spec_key(spec) for spec in run.ensemble.specs]
    prints = [store.fingerprint(spec, one.key) or "" for spec in specs for one in (run.inside, *sets)]
    today = hashlib.sha256("".join(prints).encode()).hexdigest()[:16]
    known = store.evaluation(key)
    if known.get("fingerprint") == today:
        return dict(known["found"])
    found = make()
    store.save_evaluation(key, {"fingerprint": today, "found": found})
    return found
