"""How well each uncertainty finds one OOD data set, and what credal sets change about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from credalens.evaluation.metrics.ood import OODMetrics, ood_metrics
from credalens.evaluation.results import DETECTORS, METHODS, ByMethod, Comparison, Interval, Result
from credalens.evaluation.scored_set import ScoredSet
from credalens.evaluation.statistics.bootstrap import Resampled, Resampling, resample
from credalens.evaluation.statistics.delong import compare_auroc


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
