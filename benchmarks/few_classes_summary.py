"""What ``benchmarks.few_classes`` measured, as tables: by score, by guard and by point prediction.

A cell is a table with a kind of members, a mean over its seeds. What is best in one half of the sources of tables is checked
in the other half, for all such halves.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

__all__ = ["summary"]

FEWEST_ERRORS: Final = 5
"""An AUROC of finding errors counts only where there are so many, and as many rows without."""
DEFAULT: Final = "total"
DIFFERENCES: Final = (
    ("intersection", "mean"),
    ("intersection, through credal", "mean, through averaged"),
    ("intersection", "single"),
    ("mean", "single"),
    ("intersection, through credal", "single, recalibrated"),
    ("mean, through averaged", "single, recalibrated"),
    ("intersection, through credal", "intersection"),
    ("mean, through averaged", "mean"),
    ("mean, through averaged", "single"),
)
RECALIBRATIONS: Final = (
    ("intersection, through credal", "intersection"),
    ("mean, through averaged", "mean"),
    ("single, recalibrated", "single"),
)
LESS_ACCURATE: Final = -0.01
WORSE_NLL: Final = 0.005
Cells = Sequence[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Outcome:
    """One cell of one purpose: the AUROC of every score, or the loss of every point prediction."""

    source: str
    model: str
    size: str
    values: NDArray[np.float64]


def size_of(classes: int, /) -> str:
    """The heading under which so many classes are counted."""
    return "two classes" if classes == 2 else "three to five classes" if classes <= 5 else "six and more classes"


SIZES: Final = tuple(map(size_of, (2, 3, 6)))
ANY: Final = "any number of classes"


def in_group(outcomes: Iterable[Outcome], group: str) -> list[Outcome]:
    """Those of a size, of a kind of members, or all."""
    return [outcome for outcome in outcomes if group in (ANY, outcome.size, outcome.model)]


def summary(stored: dict[str, Any], /) -> str:
    """All tables, as text."""
    cells = stored["cells"]
    if not cells:
        return "nothing was measured yet.\n"
    purposes = outcomes_by_purpose(cells)
    lines = [
        f"{len(cells)} runs: {len({c['table'] for c in cells})} tables, {len({c['model'] for c in cells})} kinds of members."
    ]
    for size in SIZES:
        lines += ["", f"## Scores, {size}: mean rank and mean AUROC below the best of the cell, in points", ""]
        lines += _score_table(stored["scores"], purposes, size)
    for purpose in ("errors", "unknown"):
        lines += ["", f"## Scores by kind of members, {purpose}, any number of classes", ""]
        lines += _member_table(stored["scores"], purposes[purpose])
    lines += [
        "",
        f"## Scores less {DEFAULT}, points of AUROC: mean over sources, 95 % interval, sources where it is better",
        "",
    ]
    lines += _against_default(stored["scores"], purposes)
    lines += ["", f"## Where {DEFAULT} is at its top", "", *_blind_table(stored["scores"], cells)]
    for size in SIZES:
        lines += ["", f"## Guards at a false-alarm rate of 5 %, {size}", ""]
        lines += _guard_table(stored["scores"], [cell for cell in cells if size_of(cell["classes"]) == size])
    for size in SIZES:
        lines += ["", f"## Point predictions, {size}", ""]
        lines += _point_tables(stored["points"], [cell for cell in cells if size_of(cell["classes"]) == size])
    lines += ["", "## Recalibration less none, by the errors of the calibration data", ""]
    lines += _recalibration_table(stored["points"], cells)
    lines += ["", "## Chosen on one half of the sources of tables, judged on the other", ""]
    lines += _check(stored, purposes)
    return "\n".join(lines) + "\n"


def _mean_over_seeds(
    cells: Cells, size: Callable[[dict[str, Any]], str | None], values: Callable[[dict[str, Any]], Any]
) -> list[Outcome]:
    """The outcomes of each table with each kind of members, and whose size is not None; runs without values are left out."""
    found: dict[tuple[str, str, str, str], list[NDArray]] = defaultdict(list)
    for cell in cells:
        name, numbers = size(cell), values(cell)
        if name is not None and numbers is not None:
            found[cell["table"], cell["model"], cell["source"], name].append(np.array(numbers, float))
    return [Outcome(source, model, name, np.mean(runs, axis=0)) for (_, model, source, name), runs in found.items()]


def outcomes_by_purpose(cells: Cells) -> dict[str, list[Outcome]]:
    """AUROC of each score for each purpose; a class that is held out is one that the members do not have."""

    def classes(cell: dict[str, Any]) -> str:
        return size_of(cell["classes"])

    def without_one(cell: dict[str, Any]) -> str | None:
        return size_of(cell["classes"] - 1) if cell["held_out"] is not None else None

    def errors(name: str) -> Callable[[dict[str, Any]], Any]:
        return lambda cell: cell[name] if _enough_errors(cell) else None

    wrong = _mean_over_seeds(cells, classes, errors("errors"))
    shuffled = _mean_over_seeds(cells, classes, lambda cell: cell["shuffled"])
    held_out = _mean_over_seeds(cells, without_one, lambda cell: cell["held_out"])
    return {
        "errors": wrong,
        "errors of mean": _mean_over_seeds(cells, classes, errors("errors_of_mean")),
        "shuffled": shuffled,
        "held out": held_out,
        "unknown": shuffled + held_out,
        "both": wrong + shuffled + held_out,
    }


def _enough_errors(cell: dict[str, Any]) -> bool:
    return FEWEST_ERRORS <= cell["test_errors"] <= cell["test_rows"] - FEWEST_ERRORS


def gaps_below_best(outcomes: Iterable[Outcome]) -> NDArray[np.float64]:
    """How far each score is below the best of its cell, (cells, scores)."""
    values = np.array([outcome.values for outcome in outcomes])
    return values.max(axis=1, keepdims=True) - values


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Columns of the same width; the first is text."""
    cells = [list(head), *([str(entry) for entry in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = []
    for row in cells:
        padded = [
            text.ljust(width) if k == 0 else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(padded) + " |")
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]


def _score_table(scores: Sequence[str], purposes: dict[str, list[Outcome]], size: str) -> list[str]:
    columns: list[list[str]] = []
    head = ["score"]
    for purpose, outcomes in purposes.items():
        if not (chosen := in_group(outcomes, size)):
            continue
        gaps = gaps_below_best(chosen)
        ranks = rankdata(np.round(gaps, 6), axis=1).mean(axis=0)
        head.append(f"{purpose} ({len(chosen)})")
        columns.append([f"{rank:4.1f} {100 * gap:5.1f}" for rank, gap in zip(ranks, gaps.mean(axis=0), strict=True)])
    return _table(head, zip(scores, *columns, strict=True))


def _member_table(scores: Sequence[str], outcomes: Sequence[Outcome]) -> list[str]:
    """What the summary says for each size, for each kind of members instead."""
    models = list(dict.fromkeys(outcome.model for outcome in outcomes))
    columns = [gaps_below_best(in_group(outcomes, model)).mean(axis=0) for model in models]
    rows = ([score, *(f"{100 * column[k]:.1f}" for column in columns)] for k, score in enumerate(scores))
    return _table(["mean AUROC below the best", *models], rows)


def _against_default(scores: Sequence[str], purposes: dict[str, list[Outcome]]) -> list[str]:
    """A bootstrap over sources of tables, whose tables are not independent of each other."""
    head, columns, generator = ["score"], [], np.random.default_rng(0)
    for purpose in ("errors", "unknown"):
        for group in (*SIZES, ANY):
            if not (chosen := in_group(purposes[purpose], group)):
                continue
            of = np.array([outcome.source for outcome in chosen])
            values = np.array([outcome.values for outcome in chosen])
            over = 100 * (values - values[:, [scores.index(DEFAULT)]])
            by_source = np.array([over[of == source].mean(axis=0) for source in np.unique(of)])
            drawn = by_source[generator.integers(len(by_source), size=(2000, len(by_source)))].mean(axis=1)
            low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
            better = (by_source > 0).sum(axis=0)
            head.append(f"{purpose}, {'any' if group == ANY else group.removesuffix(' classes')}")
            columns.append(
                [
                    f"{mean:+.1f} [{a:+.1f}, {b:+.1f}] {count}/{len(by_source)}"
                    for mean, a, b, count in zip(by_source.mean(axis=0), low, high, better, strict=True)
                ]
            )
    rows = [row for row in zip(scores, *columns, strict=True) if row[0] != DEFAULT]
    return _table(head, rows)


def _guard_table(scores: Sequence[str], cells: Cells) -> list[str]:
    """In shares of inputs; accepted and wrong at half the error rate, over the runs with enough errors."""
    promised = [cell for cell in cells if _enough_errors(cell)]

    def row(k: int, score: str) -> list[str]:
        def of_all(name: str) -> list[float]:
            return [100 * cell["guards"][name][k] for cell in cells]

        accepted = [100 * cell["guards"]["accepted"][k] for cell in promised]
        left = [(cell["guards"]["error_left"][k], cell["test_errors"] / cell["test_rows"]) for cell in promised]
        return [
            score,
            f"{sum(cell['guards']['blind'][k] for cell in cells)} of {len(cells)}",
            _mean(of_all("top"), ".1f"),
            _mean(of_all("caught"), ".1f"),
            _mean(of_all("false_alarms"), ".1f"),
            f"{accepted.count(0)} of {len(accepted)}",
            _mean(accepted, ".1f"),
            _mean([error / rate for error, rate in left if error is not None], ".2f"),
        ]

    head = ["score", "blind", "at top %", "shuffled caught %", "false alarms %", "refuses", "accepted %", "errors left"]
    return _table(head, (row(k, score) for k, score in enumerate(scores)))


def _mean(values: Sequence[float], digits: str) -> str:
    return format(np.mean(values), digits) if values else "none"


def _blind_table(scores: Sequence[str], cells: Cells) -> list[str]:
    """For each table, how the default score fares on its calibration data."""
    k, rows = scores.index(DEFAULT), []
    for name in dict.fromkeys(cell["table"] for cell in cells):
        runs = [cell for cell in cells if cell["table"] == name]
        errors = [100 * cell["test_errors"] / cell["test_rows"] for cell in runs]
        tops = [100 * cell["guards"]["top"][k] for cell in runs]
        blind = f"{sum(cell['guards']['blind'][k] for cell in runs)} of {len(runs)}"
        rows.append([name, runs[0]["classes"], _mean(errors, ".1f"), _mean(tops, ".1f"), f"{max(tops):.1f}", blind])
    head = ["table", "classes", "errors %", f"{DEFAULT} at top %", "most", "blind"]
    return _table(head, sorted(rows, key=lambda row: row[1]))


def point_outcomes(cells: Cells) -> list[Outcome]:
    """(points, metrics) of each cell; runs in which one could not be recalibrated are left out."""
    return _mean_over_seeds(
        cells,
        lambda cell: size_of(cell["classes"]),
        lambda cell: None if any(point is None for point in cell["points"]) else cell["points"],
    )


def _point_tables(points: Sequence[str], cells: Cells) -> list[str]:
    values = np.array([outcome.values for outcome in point_outcomes(cells)])
    if not len(values):
        return ["nothing"]
    means = values.mean(axis=0)
    levels = [
        [name, f"{100 * m[0]:.2f}", f"{m[1]:.3f}", f"{m[2]:.3f}", f"{m[3]:.3f}"]
        for name, m in zip(points, means, strict=True)
    ]
    lines = _table(["mean level", "accuracy %", "NLL", "ECE", "Brier"], levels)
    rows = []
    for a, b in DIFFERENCES:
        accuracy, nll, ece, brier = (values[:, points.index(a)] - values[:, points.index(b)]).T
        rows.append(
            [
                f"{a} - {b}",
                f"{100 * accuracy.mean():+.2f}", f"{100 * accuracy.min():+.2f}", f"{(accuracy < LESS_ACCURATE).sum()}",
                f"{nll.mean():+.4f}", f"{nll.max():+.3f}", f"{(nll > WORSE_NLL).sum()}", f"{(nll < -WORSE_NLL).sum()}",
                f"{ece.mean():+.4f}", f"{brier.mean():+.4f}",
            ]
        )  # fmt: skip
    head = [
        f"difference, {len(values)} cells", "accuracy", "worst", "< -1 point",
        "NLL", "worst", "> +.005", "< -.005", "ECE", "Brier",
    ]  # fmt: skip
    return [*lines, "", *_table(head, rows)]


def _recalibration_table(points: Sequence[str], cells: Cells) -> list[str]:
    """By run, since it is the number of errors in one calibration part that decides."""
    rows = []
    for least, below in pairwise((0, 5, 10, 20, 50, math.inf)):
        runs = [c for c in cells if least <= c["calibration_errors"] < below and None not in c["points"]]
        for after, before in RECALIBRATIONS:
            if runs:
                found = np.array([[cell["points"][points.index(name)] for name in (after, before)] for cell in runs])
                _, nll, ece, _ = (found[:, 0] - found[:, 1]).T
                name = f"{least} to {below - 1:.0f}" if below < math.inf else f"{least} and more"
                rows.append(
                    [
                        f"{name} errors, {len(runs)} runs: {after}",
                        f"{nll.mean():+.4f}", f"{np.median(nll):+.4f}", f"{nll.max():+.3f}",
                        f"{(nll > WORSE_NLL).mean():.0%}", f"{(nll < -WORSE_NLL).mean():.0%}", f"{ece.mean():+.4f}",
                    ]
                )  # fmt: skip
    return _table(["recalibrated less not", "NLL", "median", "worst", "> +.005", "< -.005", "ECE"], rows)


def _check(stored: dict[str, Any], purposes: dict[str, list[Outcome]]) -> list[str]:
    """What half of the sources would choose, and by how much it misses the best of the other half."""
    points = point_outcomes(stored["cells"])
    nll, accuracy = (
        [Outcome(one.source, one.model, one.size, sign * one.values[:, metric]) for one in points]
        for sign, metric in ((-1, 1), (1, 0))
    )
    scores = {name: (outcomes, stored["scores"], DEFAULT) for name, outcomes in purposes.items()}
    ways = {"NLL": (nll, stored["points"], "intersection"), "accuracy": (accuracy, stored["points"], "intersection")}
    models = list(dict.fromkeys(cell["model"] for cell in stored["cells"]))
    rows = []
    for purpose, (outcomes, names, default) in (scores | ways).items():
        for group in (*SIZES, ANY, *models):
            chosen = in_group(outcomes, group)
            if len({outcome.source for outcome in chosen}) > 1:
                rows.append([f"{purpose}, {group}", *_of_halves(chosen, names, default)])
    head = ["purpose", "best of all", "chosen by halves", "its gap", "best's gap", "default's gap", "no worse in"]
    return _table(head, rows)


def _of_halves(outcomes: Sequence[Outcome], names: Sequence[str], default: str) -> list[str]:
    """Gaps are in points of AUROC or accuracy, or hundredths of NLL."""
    gaps, of = gaps_below_best(outcomes), np.array([outcome.source for outcome in outcomes])
    sources, at = sorted(set(of)), names.index(default)
    picks: dict[str, int] = defaultdict(int)
    judged = []
    for part in combinations(sources, len(sources) // 2):
        inside = np.isin(of, part)
        for choose, judge in ((inside, ~inside), (~inside, inside)):
            pick, means = int(gaps[choose].mean(axis=0).argmin()), gaps[judge].mean(axis=0)
            picks[names[pick]] += 1
            judged.append((means[pick], means.min(), means[at]))
    of_pick, of_best, of_default = 100 * np.mean(judged, axis=0)
    wins = np.mean([pick <= by_default for pick, _, by_default in judged])
    ranked = sorted(picks.items(), key=lambda item: -item[1])[:2]
    text = ", ".join(f"{name} {count / len(judged):.0%}" for name, count in ranked)
    best = names[int(gaps.mean(axis=0).argmin())]
    return [best, text, f"{of_pick:.2f}", f"{of_best:.2f}", f"{of_default:.2f}", f"{wins:.0%}"]
