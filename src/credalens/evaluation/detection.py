"""How well each uncertainty finds one OOD data set, and what credal sets change about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.metrics.ood import OODMetrics, ood_metrics, pr_curve, roc_curve
from credalens.evaluation.results import DETECTORS, METHODS, ByDetector, ByMethod, Comparison, Interval, Result
from credalens.evaluation.scores import ScoredSet
from credalens.evaluation.statistics.bootstrap import Resampled, Resampling, resample
from credalens.evaluation.statistics.delong import compare_auroc

__all__ = ["Curves", "Detection", "Detector", "Histogram", "Line", "detect", "detection_curves"]

POINTS, BINS = 160, 40


@dataclass(frozen=True, kw_only=True)
class DetectionMetrics(OODMetrics):
    """Metrics of one score, each that is compared with its interval: of the AUROC by DeLong, of the others by bootstrap."""

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
    pairs = {(method, measure): _pair(id_set, ood_set, method, measure) for measure in DETECTORS for method in METHODS}
    scores = {_name(*key): pair for key, pair in pairs.items()}
    resampled = resample(scores, ["auprc", "fpr95"], resampling, step=step)
    detectors = {measure: _detector(scores, resampled, measure) for measure in DETECTORS}
    return Detection(ood_set.name, ood_set.source.rows, **detectors, mean_set_size=ood_set.mean_set_size())


def _pair(id_set: ScoredSet, ood_set: ScoredSet, method: str, measure: str) -> tuple[NDArray, NDArray]:
    id_scores, ood_scores = (scored.uncertainty.of(method).of(measure) for scored in (id_set, ood_set))
    return id_scores.astype(np.float64), ood_scores.astype(np.float64)


def _name(method: str, measure: str) -> str:
    return f"{method} {measure}"


def _detector(scores: dict[str, tuple[NDArray, NDArray]], resampled: Resampled, measure: str) -> Detector:
    a, b = (_name(method, measure) for method in METHODS)
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
    """What is drawn about detection: lines by OOD data set, and histograms, which need OOD data (paper, entropy_plots)."""

    detection: dict[str, ByDetector[ByMethod[DetectionLines]]]
    histograms: ByDetector[ByMethod[Histogram]] | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values; without histograms an empty mapping."""
        return super().as_dict() | ({} if self.histograms else {"histograms": {}})


def detection_curves(id_set: ScoredSet, ood_sets: list[ScoredSet], /) -> Curves:
    """ROC and PR curves and histograms of EU and TU, credal and classical."""

    def lines(ood_set: ScoredSet) -> ByDetector[ByMethod[DetectionLines]]:
        return _for_each(lambda method, measure: _lines(*_pair(id_set, ood_set, method, measure)))

    def histogram(method: str, measure: str) -> Histogram:
        return _histogram({scored.name: scored.uncertainty.of(method).of(measure) for scored in (id_set, *ood_sets)})

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
