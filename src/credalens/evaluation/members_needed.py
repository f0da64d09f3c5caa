"""How the metrics change with the number of members used: how many do I need?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation import calibration_metrics, ood_metrics
from credalens.evaluation.detection import DETECTORS
from credalens.evaluation.prediction_quality import POINT_OF
from credalens.evaluation.scores import KINDS, score_of
from credalens.evaluation.sources import Source
from credalens.prediction import CredalPrediction

__all__ = ["SIZES", "members_needed"]

SIZES, SUBSETS = 7, 5
VALUES_A_SET = 1_000_000  # rows x classes looked at: every subset of members is a prediction of its own
FEWEST_ROWS = 1000
QUALITIES = ("accuracy", "ece", "nll")

Metrics = dict[tuple[str, ...], float]


def members_needed(
    known: Source,
    others: list[Source],
    labels: NDArray | None,
    /,
    *,
    threads: int | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, Any] | None:
    """Mean and standard deviation of each metric over subsets of 1, 2, ... members; None where there is only one.

    Up to five subsets of each size are runs of consecutive members, spread evenly around the circle of all, so that
    every member is used about equally often. Large data sets are represented by evenly spaced rows.
    """
    members = known.shape[0]
    if members < 2:
        return None
    rows = {source.name: _some_rows(source) for source in (known, *others)}
    given = {source.name: source.take(rows[source.name]) for source in (known, *others)}
    truth = None if labels is None else labels[rows[known.name]]
    sizes = subset_sizes(members)
    plan = [(size, subset) for size in sizes for subset in subsets(members, size)]
    found: dict[int, list[Metrics]] = {size: [] for size in sizes}
    for done, (size, subset) in enumerate(plan, start=1):
        found[size].append(_measure(known, others, given, subset, truth, threads))
        report(done, len(plan))
    counts = {name: len(chosen) for name, chosen in rows.items()}
    return {"sizes": sizes, "subsets": [len(found[size]) for size in sizes], "rows": counts} | _collect(found)


def subset_sizes(members: int, /) -> list[int]:
    """At most seven numbers of members from 1 to all, evenly spaced on a logarithmic scale where there are more.

    >>> subset_sizes(5), subset_sizes(50)
    ([1, 2, 3, 4, 5], [1, 2, 4, 7, 14, 26, 50])
    """
    if members <= SIZES:
        return list(range(1, members + 1))
    spread = np.geomspace(1, members, SIZES).round().astype(int)
    return sorted({int(size) for size in spread})


def subsets(members: int, size: int, /) -> list[list[int]]:
    """Runs of ``size`` consecutive members around the circle, no two the same; all members make one.

    >>> subsets(3, 2)
    [[0, 1], [1, 2], [2, 0]]
    """
    starts = [0] if size == members else sorted({k * members // SUBSETS for k in range(SUBSETS)})
    return [[(start + k) % members for k in range(size)] for start in starts]


def _some_rows(source: Source) -> NDArray[np.intp]:
    _, rows, classes = source.shape
    wanted = min(rows, max(FEWEST_ROWS, VALUES_A_SET // classes))
    return np.arange(wanted) * rows // wanted


def _measure(
    known: Source,
    others: list[Source],
    given: dict[str, NDArray],
    subset: Sequence[int],
    labels: NDArray | None,
    threads: int | None,
) -> Metrics:
    """All metrics of one subset of the members."""
    inside = known.wrap(given[known.name][list(subset)], threads=threads)
    metrics = {} if labels is None else _qualities(inside, labels)
    for other in others:
        outside = other.wrap(given[other.name][list(subset)], threads=threads)
        for measure in DETECTORS:
            for kind in KINDS:
                pair = (score_of(inside, kind, measure), score_of(outside, kind, measure))
                metrics["auroc", measure, kind, other.name] = ood_metrics(*pair).auroc
    return metrics


def _qualities(prediction: CredalPrediction, labels: NDArray) -> Metrics:
    points = {"intersection": prediction.probability, "averaged": prediction.mean}
    found = {kind: calibration_metrics(points[POINT_OF[kind]], labels) for kind in KINDS}
    return {(name, kind): getattr(found[kind], name) for name in QUALITIES for kind in KINDS}


def _collect(found: dict[int, list[Metrics]]) -> dict[str, Any]:
    """Nested by the parts of each metric's key, with means and standard deviations over the subsets of each size."""
    tree: dict[str, Any] = {}
    for key in next(iter(found.values()))[0]:
        branch = tree
        for part in key:
            branch = branch.setdefault(part, {})
        branch["mean"] = [float(np.mean([one[key] for one in metrics])) for metrics in found.values()]
        branch["std"] = [float(np.std([one[key] for one in metrics])) for metrics in found.values()]
    return tree
