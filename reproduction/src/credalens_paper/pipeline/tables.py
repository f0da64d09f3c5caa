"""From a table's declaration to its result: every cell with its runs, every improvement with its sign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from credalens_paper.experiments.cells import CellKey, evaluation_sets
from credalens_paper.experiments.numbers import HIGHER, KEYS, PaperCell, describe, paper_cells
from credalens_paper.experiments.tables import Table
from credalens_paper.measures.cost import cpu_threads, measure_costs
from credalens_paper.pipeline.work import Need, Workbench

__all__ = ["ALL", "about_cell", "at_hand", "improvement", "statistics", "table_result"]

ALL: Final = "all runs"


@dataclass(frozen=True)
class Filled:
    """The numbers of a cell by run, and why the others are missing: by how many of them, or all."""

    runs: Mapping[Any, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def table_result(
    work: Workbench, table: Table, /, *, measures: Sequence[str] = (), paper_solver: bool = False
) -> dict[str, Any]:
    """Fill in a table: train, predict and evaluate what is missing, then all cells beside the paper's."""
    asked = (*table.cells, *table.extra, *_on_request(table, measures))
    filled = _costs(work, asked) if _is_cost(table) else _measured(work, table, asked)
    entries = [_entry(work, table, cell, values) for cell, values in filled.items()]
    timed = {"cpu_threads": cpu_threads(asked)} if _is_cost(table) else {}
    return {
        "label": table.label,
        "kind": "table",
        "description": describe(table.label),
        "layout": list(table.layout),
        "cells": entries,
        "improvements": _improvements(table, filled),
        "solvers": _solvers(work, table, filled) if paper_solver else [],
        **timed,
    }


def statistics(values: Sequence[float], /) -> dict[str, Any]:
    """Mean, standard deviation (of a sample, so None for one run) and number of runs.

    >>> statistics([1.0, 3.0])
    {'mean': 2.0, 'std': 1.4142135623730951, 'n': 2}
    """
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "std": spread, "n": len(values)}


def improvement(metric: str, classical: Sequence[float], credal: Sequence[float], /) -> dict[str, Any]:
    """The paired differences credal - classical, and in how many runs the credal number is the better one.

    >>> improvement("ECE", [0.5, 0.5], [0.25, 0.75])["wins"]
    1
    """
    differences = np.round(np.subtract(credal, classical), 12)  # sums in another order differ in the last bits
    better = differences > 0 if metric in HIGHER else differences < 0
    return {
        **statistics(differences.tolist()),
        "wins": int(better.sum()),
        "better": _better(metric, differences.mean()),
    }


def _better(metric: str, difference: float) -> str:
    if difference == 0:
        return "equal"
    return "credal" if (difference > 0) == (metric in HIGHER) else "classical"


def _is_cost(table: Table) -> bool:
    return all(cell.id_set is None for cell in table.cells)


def _on_request(table: Table, measures: Sequence[str]) -> tuple[CellKey, ...]:
    """More credal cells by other measures, for tables of OOD detection."""
    known = {*table.cells, *table.extra}
    credal = [cell for cell in table.cells if cell.variant == "credal" and cell.measure and cell.J is None]
    added = {replace(cell, measure=measure): None for cell in credal for measure in measures}
    return tuple(cell for cell in added if cell not in known)


def _costs(work: Workbench, asked: Sequence[CellKey]) -> dict[CellKey, Filled]:
    found = measure_costs(asked, work.preset, check=work.models.deadline.check)
    return {cell: Filled(reason=v) if isinstance(v, str) else Filled(dict(enumerate(v))) for cell, v in found.items()}


def _measured(work: Workbench, table: Table, asked: Sequence[CellKey]) -> dict[CellKey, Filled]:
    """All runs are planned before the first is made, so that a run can be stopped after a stage."""
    plans = {cell: _plan(work, table, cell) for cell in asked}
    work.make(need for needs, _ in plans.values() for need in needs)
    return {cell: _fill(work, needs, missing) for cell, (needs, missing) in plans.items()}


def _plan(work: Workbench, table: Table, cell: CellKey) -> tuple[list[Need], dict[str, str]]:
    """The runs of a cell that are measured or can be, and what is in the way of the others."""
    reason = work.excluded(cell, many=table.many)
    if reason is not None:
        return [], {ALL: reason}
    return at_hand(work, work.needs(cell, many=table.many, regime=table.regime))


def at_hand(work: Workbench, needs: Sequence[Need], /) -> tuple[list[Need], dict[str, str]]:
    """The needs that nothing is in the way of, and for the others the reason by how many runs it concerns."""
    found = [(need, work.obstacle([need])) for need in needs]
    reasons = Counter(reason for _, reason in found if reason is not None)
    missing = {ALL if n == len(needs) else f"{n} of {len(needs)} runs": reason for reason, n in reasons.items()}
    return [need for need, reason in found if reason is None], missing


def _fill(work: Workbench, needs: Sequence[Need], missing: Mapping[str, str]) -> Filled:
    values = {need.evaluation.ensemble.key: work.value(need) for need in needs}
    found = {run: value for run, value in values.items() if value is not None}
    if found:
        return Filled(found, missing)
    return Filled(reason=next(iter(missing.values()), f"all {len(needs)} runs diverged"))


def about_cell(work: Workbench, cell: CellKey, /) -> dict[str, Any]:
    """The keys of a cell as the paper has them, and those that the preset puts something else in the place of."""
    own, keys = cell.measured(work.preset).as_dict(), cell.as_dict()
    return {"keys": keys, "measured": {key: value for key, value in own.items() if value != keys[key]}}


def _entry(work: Workbench, table: Table, cell: CellKey, filled: Filled) -> dict[str, Any]:
    printed = _printed(table.label, cell)
    entry = {**about_cell(work, cell), "paper": {"mean": printed.mean, "std": printed.std} if printed else None}
    if _is_cost(table):
        entry["measured"].pop("backbone", None)  # nothing is trained, so nothing need stand in for it
    if not filled.runs:
        return {**entry, "reason": filled.reason}
    values = list(filled.runs.values())
    lacking = {"missing": dict(filled.missing)} if filled.missing else {}
    return {**entry, **statistics(values), "runs": values, **lacking}


def _printed(label: str, cell: CellKey) -> PaperCell | None:
    """The paper's number for a cell; None where the table does not have it."""
    return next(iter(paper_cells(label, **{key: getattr(cell, key) for key in KEYS})), None)


def _improvements(table: Table, filled: Mapping[CellKey, Filled]) -> list[dict[str, Any]]:
    """Credal less classical over the runs that both have."""
    found = []
    for cell, ours in filled.items():
        if cell.variant != "credal" or cell.baseline not in filled:
            continue
        theirs = filled[cell.baseline].runs
        pairs = [(theirs[run], value) for run, value in ours.runs.items() if run in theirs]
        entry: dict[str, Any] = {"keys": cell.as_dict(), "paper": _paper_improvement(table.label, cell)}
        found.append(entry | (improvement(cell.metric, *zip(*pairs, strict=True)) if pairs else {}))
    return found


def _paper_improvement(label: str, cell: CellKey) -> dict[str, Any] | None:
    ours, theirs = _printed(label, cell), _printed(label, cell.baseline)
    if ours is None or theirs is None:
        return None
    difference = round(ours.mean - theirs.mean, 6)
    return {"mean": difference, "better": _better(cell.metric, difference)}


def _solvers(work: Workbench, table: Table, filled: Mapping[CellKey, Filled]) -> list[dict[str, Any]]:
    """The paper's solver beside the exact measures, on a subsample of the first run of every model and OOD set."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for cell, values in filled.items():
        if cell.variant != "credal" or cell.metric != "AUROC" or cell.ood_set is None or not values.runs:
            continue
        run = work.runs(cell, many=table.many, regime=table.regime)[0]
        one = evaluation_sets(cell.ood_set, work.preset)[0]
        if work.preset.keep >= run.ensemble.N and not one.corruption and (run.key, one.key) not in found:
            keys = {key: value for key, value in cell.as_dict().items() if key not in ("measure", "metric", "variant")}
            work.models.deadline.check()
            work.predict([(run.ensemble, (run.inside, one))])
            found[run.key, one.key] = {"keys": keys, "run": 0, **work.evaluator.compare_solvers(run, one)}
    return list(found.values())
