"""What is drawn about detection: ROC and precision-recall curves, and histograms of each uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.metrics.ood import pr_curve, roc_curve
from credalens.evaluation.results import ByDetector, ByMethod, Result
from credalens.evaluation.scored_set import ScoredSet

POINTS, BINS = 160, 40


class Line(NamedTuple):
    """A curve thinned for drawing."""

    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class DetectionLines(Result):
    """ROC: share of ID flagged, share of OOD flagged. PR: recall, precision."""

    roc: Line
    pr: Line


LinesByScore = ByDetector[ByMethod[DetectionLines]]


@dataclass(frozen=True)
class Histogram(Result):
    """Data set -> share of its inputs in each bin, the bins shared by all data sets."""

    edges: list[float]
    share: dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class Curves(Result):
    """What is drawn about detection: lines by OOD data set, and histograms, which need OOD data (paper, entropy_plots)."""

    detection: dict[str, LinesByScore]
    histograms: ByDetector[ByMethod[Histogram]] | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values; without histograms an empty mapping."""
        return super().as_dict() | ({} if self.histograms else {"histograms": {}})


def detection_curves(id_set: ScoredSet, ood_sets: list[ScoredSet], /) -> Curves:
    """ROC and PR curves and histograms of EU and TU, credal and classical."""

    def lines(ood_set: ScoredSet) -> LinesByScore:
        return _for_each(lambda *names: _lines(id_set.of(*names), ood_set.of(*names)))

    def histogram(method: str, measure: str) -> Histogram:
        return _histogram({scored.name: scored.of(method, measure) for scored in (id_set, *ood_sets)})

    return Curves({ood_set.name: lines(ood_set) for ood_set in ood_sets}, _for_each(histogram) if ood_sets else None)


def _for_each(make: Callable[[str, str], Any]) -> ByDetector[ByMethod[Any]]:
    return ByDetector.make(lambda measure: ByMethod.make(lambda method: make(method, measure)))


def _lines(id_scores: NDArray, ood_scores: NDArray) -> DetectionLines:
    roc, pr = roc_curve(id_scores, ood_scores, points=POINTS), pr_curve(id_scores, ood_scores, points=POINTS)
    return DetectionLines(Line(_short(roc.fpr), _short(roc.tpr)), Line(_short(pr.recall), _short(pr.precision)))


def _histogram(scores: dict[str, NDArray]) -> Histogram:
    top = max(float(values.max()) for values in scores.values())
    edges = np.linspace(0.0, top if top > 0 else 1.0, BINS + 1)
    shares = {name: np.histogram(values, edges)[0] / len(values) for name, values in scores.items()}
    return Histogram(_short(edges), {name: _short(share) for name, share in shares.items()})


def _short(values: NDArray) -> list[float]:
    """Six significant digits: enough for any picture."""
    return [float(f"{value:.6g}") for value in values]
