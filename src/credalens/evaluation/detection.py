"""How well each score finds OOD inputs and wrong predictions, what credal sets change about it, and its curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import SCORES
from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.metrics.ood import OODMetrics, ood_metrics, pr_curve, roc_curve
from credalens.evaluation.metrics.selective import SelectiveMetrics, selective_metrics
from credalens.evaluation.results import DETECTORS, METHODS, ByMethod, Comparison, Interval, Result
from credalens.evaluation.statistics.bootstrap import Resampled, Resampling, resample
from credalens.evaluation.statistics.comparisons import compare_auroc


@dataclass(frozen=True, kw_only=True)
class DetectionMetrics(OODMetrics):
    """Metrics of one score, each that is compared with its interval: that of the AUROC by DeLong, the others by bootstrap."""

    auroc_interval: Interval
    auprc_interval: Interval
    fpr95_interval: Interval


@dataclass(frozen=True)
class Differences(Result):
    """Credal minus classical, paired, metric by metric."""

    auroc: Comparison
    auprc: Comparison
    fpr95: Comparison


@dataclass(frozen=True, eq=False)
class Detector(ByMethod[DetectionMetrics]):
    """One uncertainty as a score for OOD, by both methods and compared."""

    difference: Differences


@dataclass(frozen=True, eq=False)
class Detection(Result):
    """How well one OOD data set is found, by its epistemic and by its total uncertainty."""

    name: str
    rows: int
    epistemic: Detector
    total: Detector
    mean_set_size: dict[str, float]

    def detectors(self) -> list[tuple[str, Detector]]:
        """Both uncertainties with their names."""
        return [("epistemic", self.epistemic), ("total", self.total)]


def detect(
    id_set: ScoredSet, ood_set: ScoredSet, resampling: Resampling, /, *, step: Callable[[], None] = lambda: None
) -> Detection:
    """Metrics of both methods with intervals, and their paired difference, for every uncertainty that is a score."""
    scores = {
        f"{method} {measure}": (id_set.of(method, measure), ood_set.of(method, measure))
        for measure in DETECTORS
        for method in METHODS
    }
    resampled = resample(scores, ["auprc", "fpr95"], resampling, step=step)
    detectors = {measure: _detector(scores, resampled, measure) for measure in DETECTORS}
    return Detection(ood_set.name, ood_set.source.rows, **detectors, mean_set_size=ood_set.mean_set_size())


def _detector(scores: dict[str, tuple[NDArray, NDArray]], resampled: Resampled, measure: str) -> Detector:
    a, b = (f"{method} {measure}" for method in METHODS)
    difference = Differences(
        compare_auroc(*scores[a], *scores[b], level=resampled.level),
        resampled.difference(a, b, "auprc"),
        resampled.difference(a, b, "fpr95"),
    )
    return Detector(_metrics(scores[a], resampled, a), _metrics(scores[b], resampled, b), difference)


def _metrics(pair: tuple[NDArray, NDArray], resampled: Resampled, name: str) -> DetectionMetrics:
    metrics: dict[str, Any] = vars(ood_metrics(*pair, confidence=resampled.level))
    return DetectionMetrics(
        **metrics,
        auprc_interval=resampled.interval(name, "auprc"),
        fpr95_interval=resampled.interval(name, "fpr95"),
    )


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


@dataclass(frozen=True, eq=False)
class ScoreQuality(Result):
    """One score of the catalogue.

    :ivar label: what tables call it.
    :ivar averaging: whether it belongs to averaged predictions.
    :ivar ood: OOD data set -> how well the score finds it, with the interval of the AUROC.
    :ivar selective: how well it finds wrong predictions of the recommended kind; None without labels.
    """

    name: str
    label: str
    averaging: bool
    ood: dict[str, OODMetrics]
    selective: SelectiveMetrics | None


def score_qualities(
    id_set: ScoredSet, ood_sets: list[ScoredSet], correct: NDArray[np.bool_] | None, /, *, level: float
) -> tuple[ScoreQuality, ...]:
    """All scores, in the order of the catalogue."""
    return tuple(
        ScoreQuality(
            name,
            SCORES[name].label,
            SCORES[name].averaging,
            {one.name: ood_metrics(id_scores, one.scores[name], confidence=level) for one in ood_sets},
            None if correct is None else selective_metrics(id_scores, correct),
        )
        for name, id_scores in id_set.scores.items()
    )


def scores_of_mistakes(
    id_set: ScoredSet, correct: NDArray[np.bool_], /
) -> tuple[dict[str, NDArray], dict[str, dict[str, NDArray]]]:
    """The scores of right predictions, and those of wrong ones as the data set to find; none where there are too few."""
    right = {name: values[correct] for name, values in id_set.scores.items()}
    wrong = {name: values[~correct] for name, values in id_set.scores.items()}
    return right, ({"wrong predictions": wrong} if 2 <= correct.sum() <= len(correct) - 2 else {})
