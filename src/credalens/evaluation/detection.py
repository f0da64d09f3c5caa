"""How well each score finds OOD inputs and wrong predictions, what credal sets change about it, and its curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import SCORES
from credalens.evaluation.data_sets import ScoredSet, score_name
from credalens.evaluation.intervals import Resampling, resample
from credalens.evaluation.labelled import SelectiveMetrics, selective_metrics
from credalens.evaluation.ood import OODMetrics, compare_auroc, ood_metrics, pr_curve, roc_curve
from credalens.evaluation.results import DETECTORS, METHODS, ByMethod, Comparison, Interval, Result, renamed

POINTS, BINS = 160, 40
SPREAD_OUT: Final = 0.995
"""Share of a data set that a histogram spreads out; what lies above is in its last bin."""
DETECTOR_SCORES: Final = tuple(score_name(method, measure) for method in METHODS for measure in reversed(DETECTORS))
"""Total and epistemic uncertainty by both methods: compared in detail, and drawn beside the recommended score."""


@dataclass(frozen=True, kw_only=True)
class DetectionMetrics(OODMetrics):
    """Metrics of one score, each that is compared with its interval: that of the AUROC by DeLong, the others by bootstrap."""

    auroc_interval: Interval
    auprc_interval: Interval
    fpr95_interval: Interval


@dataclass(frozen=True)
class Differences(Result):
    """Credal minus averaged, paired, metric by metric."""

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
    pairs = {name: (id_set.scores[name], ood_set.scores[name]) for name in DETECTOR_SCORES}
    resampled = resample(pairs, ["auprc", "fpr95"], resampling, step=step)

    def metrics(name: str) -> DetectionMetrics:
        of_score: dict[str, Any] = vars(ood_metrics(*pairs[name], confidence=resampling.level))
        auprc, fpr95 = resampled.interval(name, "auprc"), resampled.interval(name, "fpr95")
        return DetectionMetrics(**of_score, auprc_interval=auprc, fpr95_interval=fpr95)

    def detector(measure: str) -> Detector:
        a, b = (score_name(method, measure) for method in METHODS)
        auroc = compare_auroc(*pairs[a], *pairs[b], level=resampling.level)
        auprc, fpr95 = resampled.difference(a, b, "auprc"), resampled.difference(a, b, "fpr95")
        return Detector(metrics(a), metrics(b), Differences(auroc, auprc, fpr95))

    detectors = {measure: detector(measure) for measure in DETECTORS}
    return Detection(ood_set.name, ood_set.source.rows, **detectors, mean_set_size=ood_set.mean_set_size())


Line = tuple[list[float], list[float]]


@dataclass(frozen=True)
class DetectionLines(Result):
    """Curves thinned for drawing. ROC: share of ID flagged, share of OOD flagged. PR: recall, precision."""

    roc: Line
    pr: Line


@dataclass(frozen=True)
class Histogram(Result):
    """Data set -> share of its inputs in each bin, the bins shared by all data sets."""

    edges: list[float]
    share: dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class Curves(Result):
    """Curves of detection, for drawing.

    :ivar detection: OOD data set -> score -> its lines.
    :ivar histograms: score -> all data sets (paper, entropy_plots).
    """

    detection: dict[str, dict[str, DetectionLines]]
    histograms: dict[str, Histogram]


def detection_curves(id_set: ScoredSet, ood_sets: list[ScoredSet], recommended: str, /) -> Curves:
    """ROC and PR curves and histograms of the recommended score, and of EU and TU by both methods."""
    names = [*dict.fromkeys((recommended, *DETECTOR_SCORES))] if ood_sets else []

    def lines(name: str, ood_set: ScoredSet) -> DetectionLines:
        pair = id_set.scores[name], ood_set.scores[name]
        roc, pr = roc_curve(*pair, points=POINTS), pr_curve(*pair, points=POINTS)
        return DetectionLines((_short(roc.fpr), _short(roc.tpr)), (_short(pr.recall), _short(pr.precision)))

    return Curves(
        {one.name: {name: lines(name, one) for name in names} for one in ood_sets},
        {name: _histogram({one.name: one.scores[name] for one in (id_set, *ood_sets)}) for name in names},
    )


def _histogram(scores: dict[str, NDArray]) -> Histogram:
    top = max(float(np.quantile(values, SPREAD_OUT)) for values in scores.values())
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
    :ivar averaged: whether it is a score of averaged predictions; the others are of credal sets.
    :ivar ood: OOD data set -> how well the score finds it, with the interval of the AUROC.
    :ivar selective: how well it finds wrong predictions of the recommended kind; None without labels.
    """

    name: str
    label: str
    averaged: bool
    ood: dict[str, OODMetrics]
    selective: SelectiveMetrics | None
    averaging: ClassVar[Any] = renamed("averaging", "averaged")


def score_qualities(
    id_set: ScoredSet, ood_sets: Sequence[ScoredSet], correct: NDArray[np.bool_] | None, /, *, level: float
) -> tuple[ScoreQuality, ...]:
    """All scores, in the order of the catalogue."""

    def quality(name: str, id_scores: NDArray) -> ScoreQuality:
        ood = {one.name: ood_metrics(id_scores, one.scores[name], confidence=level) for one in ood_sets}
        selective = None if correct is None else selective_metrics(id_scores, correct)
        return ScoreQuality(name, SCORES[name].label, SCORES[name].averaged, ood, selective)

    return tuple(quality(*item) for item in id_set.scores.items())
