"""Are the predictions on labelled data right, calibrated, and better where uncertain inputs are turned away?"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import NDArray

from credalens.checks.labels import warn_shifted_labels
from credalens.evaluation.advice.which_point import PointChoice, choose_point
from credalens.evaluation.judged_rows import JudgedRows
from credalens.evaluation.metrics.calibration import (
    CalibrationMetrics,
    ReliabilityCurve,
    calibration_metrics,
    reliability_curve,
)
from credalens.evaluation.metrics.selective import RejectionCurve, accuracy_rejection_curve
from credalens.evaluation.metrics.sets import SetMetrics, set_metrics
from credalens.evaluation.results import ByMeasure, ByMethod, Result
from credalens.evaluation.scored_set import ScoredSet
from credalens.evaluation.statistics.bootstrap import Resampling

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
