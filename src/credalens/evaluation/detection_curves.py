"""What is drawn about detection: ROC and precision-recall curves, and histograms of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.metrics.ood import pr_curve, roc_curve
from credalens.evaluation.results import Result
from credalens.evaluation.scored_set import ScoredSet

POINTS, BINS = 160, 40
SHOWN: Final = 0.995
"""Share of a data set that a histogram spreads out; what lies above is in its last bin."""
ALWAYS: Final = ("total", "epistemic", "mean_total", "mean_epistemic")
"""The scores that are drawn beside the recommended one."""


class Line(NamedTuple):
    """A curve thinned for drawing."""

    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class DetectionLines(Result):
    """ROC: share of ID flagged, share of OOD flagged. PR: recall, precision."""

    roc: Line
    pr: Line


@dataclass(frozen=True)
class Histogram(Result):
    """Data set -> share of its inputs in each bin, the bins shared by all data sets."""

    edges: list[float]
    share: dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class Curves(Result):
    """What is drawn about detection.

    :ivar detection: OOD data set -> score -> its lines.
    :ivar histograms: score -> all data sets (paper, entropy_plots).
    """

    detection: dict[str, dict[str, DetectionLines]]
    histograms: dict[str, Histogram]


def detection_curves(id_set: ScoredSet, ood_sets: list[ScoredSet], recommended: str, /) -> Curves:
    """ROC and PR curves and histograms of the recommended score, and of EU and TU by both methods."""
    names = [*dict.fromkeys((recommended, *ALWAYS))] if ood_sets else []
    return Curves(
        {one.name: {name: _lines(id_set, one, name) for name in names} for one in ood_sets},
        {name: _histogram([id_set, *ood_sets], name) for name in names},
    )


def _lines(id_set: ScoredSet, ood_set: ScoredSet, name: str) -> DetectionLines:
    scores = id_set.scores[name], ood_set.scores[name]
    roc, pr = roc_curve(*scores, points=POINTS), pr_curve(*scores, points=POINTS)
    return DetectionLines(Line(_short(roc.fpr), _short(roc.tpr)), Line(_short(pr.recall), _short(pr.precision)))


def _histogram(sets: Sequence[ScoredSet], name: str) -> Histogram:
    scores = {one.name: one.scores[name] for one in sets}
    top = max(float(np.quantile(values, SHOWN)) for values in scores.values())
    edges = np.linspace(0.0, top if top > 0 else 1.0, BINS + 1)
    shares = {of: np.histogram(np.minimum(values, edges[-1]), edges)[0] / len(values) for of, values in scores.items()}
    return Histogram(_short(edges), {of: _short(share) for of, share in shares.items()})


def _short(values: NDArray) -> list[float]:
    """Six significant digits: enough for any picture."""
    return [float(f"{value:.6g}") for value in values]
