"""Metrics against the number of members used: how many do I need?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.core.options import collecting_open_rows
from credalens.core.recalibration import Recalibration
from credalens.evaluation.data_sets import score_name
from credalens.evaluation.labelled import calibration_metrics
from credalens.evaluation.ood import ood_metrics
from credalens.evaluation.results import DETECTORS, METHODS, ByDetector, ByMethod, Result
from credalens.guard.signature import read_score
from credalens.prediction import CredalPrediction
from credalens.storage.source import Chunk, Source, wrap_chunk

SIZES, SUBSETS = 7, 5
VALUES_A_SET = 1_000_000  # rows x classes looked at: every subset of members is a prediction of its own
FEWEST_ROWS = 1000

Metrics = dict[tuple[str, ...], float]
"""Of one subset of the members: ("auroc", measure, method, OOD data set) or, for example, ("ece", method) -> value."""


@dataclass(frozen=True)
class Trend(Result):
    """Mean and standard deviation of a metric over the subsets of each size."""

    mean: list[float]
    std: list[float]


@dataclass(frozen=True, eq=False)
class MembersNeeded(Result):
    """Every metric against the number of members.

    :ivar sizes: numbers of members.
    :ivar subsets: how many subsets of each.
    :ivar rows: data set -> how many rows were looked at.
    :ivar accuracy: None without labels, as are ``ece`` and ``nll``.
    :ivar auroc: by OOD data set; None without any.
    """

    sizes: list[int]
    subsets: list[int]
    rows: dict[str, int]
    accuracy: ByMethod[Trend] | None
    ece: ByMethod[Trend] | None
    nll: ByMethod[Trend] | None
    auroc: ByDetector[ByMethod[dict[str, Trend]]] | None

    def epistemic_auroc(self) -> dict[str, ByMethod[Trend]]:
        """OOD data set -> AUROC of EU from the second size on: one member alone has no epistemic uncertainty."""
        tails = {
            method: {name: Trend(trend.mean[1:], trend.std[1:]) for name, trend in trends.items()}
            for method, trends in (self.auroc.epistemic.items() if self.auroc else ())
        }
        return {name: ByMethod(trend, tails["averaged"][name]) for name, trend in tails.get("credal", {}).items()}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, without what is missing."""
        return {name: value for name, value in super().as_dict().items() if value is not None}


def members_needed(
    id_source: Source,
    ood_sources: list[Source],
    labels: NDArray | None,
    /,
    *,
    recalibration: Recalibration | None = None,
    threads: int | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> MembersNeeded | None:
    """Every metric for 1, 2, ... members; None where there is only one.

    Up to five subsets of each size are runs of consecutive members, spread evenly around the circle of all, so that
    every member is used about equally often. Large data sets are represented by evenly spaced rows.
    """
    members, _, classes = id_source.shape
    if members < 2:
        return None
    sources = [id_source, *ood_sources]
    counts = {source.name: min(source.rows, max(FEWEST_ROWS, VALUES_A_SET // classes)) for source in sources}
    rows = [np.arange(counts[source.name]) * source.rows // counts[source.name] for source in sources]
    taken = [source.take(chosen) for source, chosen in zip(sources, rows, strict=True)]
    truth = None if labels is None else labels[rows[0]]
    plan = [(size, subset) for size in subset_sizes(members) for subset in subsets(members, size)]
    measured: dict[int, list[Metrics]] = {}
    for done, (size, subset) in enumerate(plan, start=1):
        own = recalibration and Recalibration.of(recalibration.temperatures[subset], classes=classes)
        with collecting_open_rows():  # rows that are open with all members were warned of
            predictions = {
                source.name: wrap_chunk(source, Chunk(0, array[subset]), recalibration=own, threads=threads)
                for source, array in zip(sources, taken, strict=True)
            }
            measured.setdefault(size, []).append(_measure(predictions, truth))
        report(done, len(plan))

    def trend(*key: str) -> Trend:
        values = [[metrics[key] for metrics in of_size] for of_size in measured.values()]
        return Trend([float(np.mean(v)) for v in values], [float(np.std(v)) for v in values])

    def quality(name: str) -> ByMethod[Trend] | None:
        return None if labels is None else ByMethod.make(lambda method: trend(name, method))

    def auroc(measure: str) -> ByMethod[dict[str, Trend]]:
        names = [source.name for source in ood_sources]
        return ByMethod.make(lambda method: {name: trend("auroc", measure, method, name) for name in names})

    return MembersNeeded(
        sizes=list(measured),
        subsets=[len(of_size) for of_size in measured.values()],
        rows=counts,
        auroc=ByDetector.make(auroc) if ood_sources else None,
        **{name: quality(name) for name in ("accuracy", "ece", "nll")},
    )


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


def _measure(predictions: dict[str, CredalPrediction], labels: NDArray | None) -> Metrics:
    """Accuracy and calibration of the first prediction, which is ID, and its AUROC against each of the others."""
    (_, id_prediction), *ood = predictions.items()
    metrics: Metrics = {}
    if labels is not None:
        for method, probs in ByMethod(id_prediction.probability, id_prediction.mean).items():
            quality = calibration_metrics(probs, labels)
            metrics |= {(name, method): getattr(quality, name) for name in ("accuracy", "ece", "nll")}
    for name, prediction in ood:
        for measure in DETECTORS:
            for method in METHODS:
                scores = (read_score(one, score_name(method, measure)) for one in (id_prediction, prediction))
                metrics["auroc", measure, method, name] = ood_metrics(*scores).auroc
    return metrics
