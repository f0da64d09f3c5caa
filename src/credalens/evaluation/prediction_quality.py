"""Are the predictions on labelled data right, calibrated, and better where uncertain inputs are turned away?

Two point predictions are compared on the same inputs. Which one to use follows from NLL and ECE.
The rule: the intersection probability stays unless the mean is clearly better in NLL or ECE and clearly worse in neither;
"clearly" is a paired test with Holm's correction for the two, and a difference that is not `NEGLIGIBLE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import warn_shifted_labels
from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.metrics.calibration import (
    NLL_FLOOR,
    CalibrationMetrics,
    ReliabilityCurve,
    calibration_metrics,
    confidence_bins,
    reliability_curve,
)
from credalens.evaluation.metrics.selective import RejectionCurve, SetMetrics, accuracy_rejection_curve, set_metrics
from credalens.evaluation.results import ByMeasure, ByMethod, Result
from credalens.evaluation.statistics.bootstrap import Resampling, bootstrap_p_value
from credalens.evaluation.statistics.comparisons import PairedMean, holm, paired_mean, paired_share
from credalens.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Of every input, (rows,): its label, whether the class named is right, how sure, and -ln p(label)."""

    labels: NDArray[np.int64]
    correct: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    surprise: NDArray[np.float64]

    __repr__ = short_repr

    @classmethod
    def of(cls, probs: NDArray, labels: NDArray, predicted: NDArray, /) -> JudgedRows:
        """Of probabilities (rows, classes) and the classes that they name."""
        of_label = probs[np.arange(len(probs)), labels].astype(np.float64)
        surprise = -np.log(np.maximum(of_label, NLL_FLOOR))
        return cls(labels, predicted == labels, probs.max(axis=-1).astype(np.float64), surprise)


def paired_accuracy(a: JudgedRows, b: JudgedRows, /, *, level: float) -> PairedMean:
    """The accuracy of a minus that of b."""
    return paired_share(a.correct, b.correct, level=level)


def paired_nll(a: JudgedRows, b: JudgedRows, /, *, level: float) -> PairedMean:
    """The NLL of a minus that of b."""
    return paired_mean(a.surprise - b.surprise, level=level)


def paired_ece(a: JudgedRows, b: JudgedRows, /, *, bins: int, resampling: Resampling) -> PairedMean:
    """The ECE of a minus that of b, by the paired bootstrap: each replicate draws the same inputs for both."""
    generator, n = np.random.default_rng(resampling.seed), len(a.labels)
    errors = [_Binned.of(rows, bins) for rows in (a, b)]
    drawn = np.empty(resampling.replicates)
    for replicate in range(len(drawn)):
        rows = generator.integers(n, size=n)
        drawn[replicate] = errors[0].ece(rows) - errors[1].ece(rows)
    low, high = np.quantile(drawn, [(1 - resampling.level) / 2, (1 + resampling.level) / 2])
    observed = errors[0].ece(slice(None)) - errors[1].ece(slice(None))
    return PairedMean(observed, float(low), float(high), bootstrap_p_value(drawn))


@dataclass(frozen=True)
class _Binned:
    """Confidence minus correctness of every input, and the bin of its confidence."""

    gaps: NDArray[np.float64]
    bins: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, rows: JudgedRows, count: int) -> _Binned:
        return cls(rows.confidence - rows.correct, confidence_bins(rows.confidence, count)[1], count)

    def ece(self, rows: NDArray[np.intp] | slice) -> float:
        gaps = self.gaps[rows]
        return float(np.abs(np.bincount(self.bins[rows], weights=gaps, minlength=self.count)).sum() / len(gaps))


NEGLIGIBLE: Final = 1e-3
"""A difference below it, a tenth of a percentage point of ECE or a thousandth of NLL, is of no account."""


@dataclass(frozen=True)
class PointDifference(Result):
    """A metric of the intersection probability minus that of the mean, with its interval; negative is a gain."""

    metric: str
    difference: float
    low: float
    high: float
    p_value: float
    """Two-sided, with Holm's correction for both metrics."""

    def is_clear(self, level: float, /) -> bool:
        """Whether the difference is neither chance nor negligible."""
        return self.p_value < 1 - level and abs(self.difference) >= NEGLIGIBLE


@dataclass(frozen=True)
class PointChoice(Result):
    """The point prediction to use, and what speaks for it."""

    prediction: Literal["intersection", "mean"]
    nll: PointDifference
    ece: PointDifference
    level: float

    @property
    def clear(self) -> list[PointDifference]:
        """The metrics that clearly speak for either of the two."""
        return [difference for difference in (self.nll, self.ece) if difference.is_clear(self.level)]


def choose_point(judged: ByMethod[JudgedRows], /, *, bins: int, resampling: Resampling) -> PointChoice:
    """Apply the rule above to the intersection probability and the mean."""
    nll = paired_nll(judged.credal, judged.classical, level=resampling.level)
    ece = paired_ece(judged.credal, judged.classical, bins=bins, resampling=resampling)
    p_values = holm({"NLL": nll.p_value, "ECE": ece.p_value})
    differences = [
        PointDifference(metric, *numbers[:3], p_values[metric]) for metric, numbers in (("NLL", nll), ("ECE", ece))
    ]
    clear = [d.difference for d in differences if d.is_clear(resampling.level)]
    worse = bool(clear) and min(clear) > 0
    of_nll, of_ece = differences
    return PointChoice("mean" if worse else "intersection", of_nll, of_ece, resampling.level)


POINTS = 160


@dataclass(frozen=True, eq=False)
class PointQuality(CalibrationMetrics):
    """Accuracy, ECE, NLL and Brier score of one point prediction, with its reliability curve."""

    reliability: ReliabilityCurve


@dataclass(frozen=True, eq=False)
class Calibration(Result):
    """The intersection probability of credal sets and the averaged probability."""

    intersection: PointQuality
    averaged: PointQuality


@dataclass(frozen=True, eq=False)
class PredictionQuality:
    """All that needs labels: calibration, accuracy-rejection curves, and set-valued predictions by rule.

    :ivar judged: every input by the point prediction of each method.
    """

    judged: ByMethod[JudgedRows]
    point: PointChoice
    calibration: Calibration
    selective: ByMeasure[ByMethod[RejectionCurve]]
    sets: dict[str, SetMetrics]


def prediction_quality(
    scored: ScoredSet, labels: NDArray, /, *, bins: int, resampling: Resampling
) -> PredictionQuality:
    """Judge the predictions of a data set that was scored with ``labelled``; each uncertainty its own point prediction."""
    points, predicted = scored.points, scored.predicted
    if points is None or predicted is None:
        raise ValueError(f"{scored.name} was scored without point predictions.")
    warn_shifted_labels(labels, predicted.credal, stacklevel=4)
    judged = ByMethod.make(lambda method: JudgedRows.of(points.of(method), labels, predicted.of(method)))

    def rejection(method: str, measure: str) -> RejectionCurve:
        return accuracy_rejection_curve(scored.of(method, measure), judged.of(method).correct, points=POINTS)

    quality = ByMethod.make(lambda method: _quality(points.of(method), labels, bins, predicted.of(method)))
    return PredictionQuality(
        judged,
        choose_point(judged, bins=bins, resampling=resampling),
        Calibration(quality.credal, quality.classical),
        ByMeasure.make(lambda measure: ByMethod.make(lambda method: rejection(method, measure))),
        {rule: set_metrics(sets, labels) for rule, sets in scored.sets.items()},
    )


def _quality(probs: NDArray, labels: NDArray, bins: int, predicted: NDArray) -> PointQuality:
    metrics = calibration_metrics(probs, labels, bins=bins, predicted=predicted)
    curve = reliability_curve(probs, labels, bins=bins, predicted=predicted)
    return PointQuality(**vars(metrics), reliability=curve)
