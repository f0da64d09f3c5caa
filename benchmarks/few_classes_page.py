"""The tables of docs/few_classes.md, from the result file: ``python -m benchmarks.few_classes_page`` writes them."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.few_classes_summary import (
    ANY,
    SIZES,
    gaps_below_best,
    in_group,
    outcomes_by_purpose,
    point_outcomes,
    size_of,
)
from benchmarks.recalibration_tables import ROOT, read, table, with_tables

PAGE: Final = ROOT / "docs" / "few_classes.md"
SCORES: Final = ("total", "entropy", "mean_total", "mean_least_confidence", "hartley", "mean_epistemic")
GUARDS: Final = ("total", "mean_total", "hartley")
DIFFERENCES: Final = (("intersection", "mean"), ("mean", "single"), ("intersection", "single"))
ERRORS: Final = ((0, 10), (10, 50), (50, math.inf))
"""Bounds of how many of the calibration inputs are predicted wrong."""
RECALIBRATED: Final = ("mean, through averaged", "mean")


@cache
def stored() -> dict[str, Any]:
    """The result file."""
    return read("few_classes")


def gap(purpose: str, score: str, group: str = ANY) -> str:
    """Points of AUROC of a score below the best one, on average over tables and members."""
    outcomes = in_group(outcomes_by_purpose(stored()["cells"])[purpose], group)
    return f"{100 * gaps_below_best(outcomes).mean(axis=0)[stored()['scores'].index(score)]:.1f}"


def gaps_table() -> str:
    """Of the scores, for errors and for unknown inputs, by number of classes."""
    columns = [(purpose, size) for purpose in ("errors", "unknown") for size in SIZES]
    rows = [(f"`{score}`", *(gap(purpose, score, size) for purpose, size in columns)) for score in SCORES]
    head = [f"{purpose}, {size.removesuffix(' classes')}" for purpose, size in columns]
    return table(("points below the best score", *head), rows)


def guard_table() -> str:
    """How many guards for false alarms can flag nothing, and what the others and they caught of shuffled rows."""
    rows = []
    for size in SIZES:
        cells = [cell for cell in stored()["cells"] if size_of(cell["classes"]) == size]
        places = [stored()["scores"].index(score) for score in GUARDS]
        blind = [sum(cell["guards"]["blind"][k] for cell in cells) for k in places]
        caught = [100 * np.mean([cell["guards"]["caught"][k] for cell in cells]) for k in places]
        rows.append((size, *(f"{count} of {len(cells)}" for count in blind), *(f"{share:.1f}" for share in caught)))
    head = [f"{what} `{score}`" for what in ("blind,", "caught, %,") for score in GUARDS]
    return table(("classes", *head), rows)


def differences(a: str, b: str, size: str) -> NDArray[np.float64]:
    """What (accuracy, NLL, ...) of one point prediction are above those of another, for each table and kind of members."""
    values = np.array([outcome.values for outcome in in_group(point_outcomes(stored()["cells"]), size)])
    return values[:, stored()["points"].index(a)] - values[:, stored()["points"].index(b)]


def points_table() -> str:
    """Accuracy in points and NLL, by number of classes."""
    rows = []
    for size in SIZES:
        shown: list[str] = []
        for a, b in DIFFERENCES:
            accuracy, nll = differences(a, b, size).mean(axis=0)[:2]
            shown += [f"{100 * accuracy:+.2f}", f"{nll:+.4f}"]
        rows.append((size, *shown))
    head = [f"{what}, {a} - {b}" for a, b in DIFFERENCES for what in ("accuracy", "NLL")]
    return table(("classes", *head), rows)


def recalibration_table() -> str:
    """What a temperature for the mean did to the NLL of other inputs, by the wrong predictions that it was fitted on."""
    after, before = (stored()["points"].index(name) for name in RECALIBRATED)
    rows = []
    for least, below in ERRORS:
        runs = [c for c in stored()["cells"] if least <= c["calibration_errors"] < below and None not in c["points"]]
        nll = np.array([cell["points"][after][1] - cell["points"][before][1] for cell in runs])
        name = (
            f"fewer than {below}"
            if not least
            else f"{least} and more"
            if below == math.inf
            else f"{least} to {below - 1}"
        )
        rows.append(
            (
                name,
                f"{len(runs)}",
                f"{nll.mean():+.3f}",
                f"{np.median(nll):+.3f}",
                f"{nll.max():+.3f}",
                f"{100 * (nll > 0.005).mean():.0f} %",
            )
        )
    head = ("calibration inputs predicted wrong", "runs", "NLL, mean", "median", "worst", "worse by over 0.005")
    return table(head, rows)


TABLES: Final = {
    "gaps": gaps_table,
    "guards": guard_table,
    "points": points_table,
    "recalibrated": recalibration_table,
}


def page_with_tables(path: Path = PAGE) -> str:
    """The page with its tables as the result file gives them."""
    return with_tables(path.read_text(encoding="utf-8"), TABLES)


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(), encoding="utf-8")
