"""Are the predictions on labelled data right, calibrated, and better where uncertain inputs are turned away?"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from credalens.evaluation import accuracy_rejection_curve, calibration_metrics, reliability_curve, set_metrics
from credalens.evaluation.scores import KINDS, MEASURES, Scored

__all__ = ["POINT_OF", "calibration", "selective", "set_quality"]

POINT_OF = {"credal": "intersection", "classical": "averaged"}
"""The point prediction that belongs to each kind of uncertainty."""
POINTS = 160


def calibration(known: Scored, labels: NDArray, /, *, bins: int) -> dict[str, Any]:
    """Accuracy, ECE, NLL, Brier score and reliability curve of the intersection and the averaged probability."""
    return {
        name: calibration_metrics(probs, labels, bins=bins).as_dict()
        | {"reliability": reliability_curve(probs, labels, bins=bins).as_dict()}
        for name, probs in known.probs.items()
    }


def selective(known: Scored, labels: NDArray, /) -> dict[str, Any]:
    """Accuracy-rejection curve and its area for every uncertainty, each judging its own point prediction."""
    correct = {kind: known.probs[POINT_OF[kind]].argmax(axis=-1) == labels for kind in KINDS}
    return {
        measure: {
            kind: accuracy_rejection_curve(known.scores[kind][measure], correct[kind], points=POINTS).as_dict()
            for kind in KINDS
        }
        for measure in MEASURES
    }


def set_quality(known: Scored, labels: NDArray, /) -> dict[str, Any]:
    """Coverage, size, determinacy and utilities of set-valued predictions, rule by rule."""
    return {rule: set_metrics(sets, labels).as_dict() for rule, sets in known.sets.items()}
