"""Are the predictions on labelled data right, calibrated, and better where uncertain inputs are turned away?"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import NDArray

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
    """All that needs labels: calibration, accuracy-rejection curves, and set-valued predictions by rule."""

    calibration: Calibration
    selective: ByMeasure[ByMethod[RejectionCurve]]
    sets: dict[str, SetMetrics]


def prediction_quality(scored: ScoredSet, labels: NDArray, /, *, bins: int) -> PredictionQuality:
    """Judge the predictions of a data set that was scored with ``labelled``; each uncertainty its own point prediction."""
    points = scored.points
    if points is None:
        raise ValueError(f"{scored.name} was scored without point predictions.")
    correct = ByMethod.make(lambda method: points.of(method).argmax(axis=-1) == labels)

    def rejection(method: str, measure: str) -> RejectionCurve:
        return accuracy_rejection_curve(scored.scores(method, measure), correct.of(method), points=POINTS)

    return PredictionQuality(
        Calibration(_quality(points.credal, labels, bins), _quality(points.classical, labels, bins)),
        ByMeasure.make(lambda measure: ByMethod.make(lambda method: rejection(method, measure))),
        {rule: set_metrics(sets, labels) for rule, sets in scored.sets.items()},
    )


def _quality(probs: NDArray, labels: NDArray, bins: int) -> PointQuality:
    metrics = calibration_metrics(probs, labels, bins=bins)
    return PointQuality(**vars(metrics), reliability=reliability_curve(probs, labels, bins=bins))
