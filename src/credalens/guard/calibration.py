"""Calibration data of a guard: scores of calibration inputs, the predicted and the true classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.labels import read_labels, warn_shifted_labels
from credalens.guard.signature import Signature, check_prediction
from credalens.prediction import CredalPrediction


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How predictions of calibration inputs turned out: their scores, the predicted and the true classes, (n,) each."""

    scores: NDArray[np.float64]
    predicted: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CalibrationData:
    """Scores (n,) under a signature, and with labels the predicted and the true classes (n,)."""

    signature: Signature
    scores: NDArray[np.float64]
    predicted: NDArray[np.int64] | None = None
    labels: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, prediction: CredalPrediction, labels: Any = None, /, *, score: str, point: str) -> CalibrationData:
        """Extract what a guard needs from predictions of calibration inputs."""
        check_prediction(prediction)
        if 0 in prediction.lower.shape:
            raise ValueError("the calibration data are empty; a guard needs inputs like those it will meet.")
        signature = Signature.of(prediction, score=score, point=point)
        scores = signature.scores_of(prediction).ravel()
        if labels is None:
            return cls(signature, scores)
        truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape))
        named = to_numpy(signature.predicted(prediction))[0].astype(np.int64)
        warn_shifted_labels(truth, named, stacklevel=4)
        return cls(signature, scores, named.ravel(), truth.ravel())

    @property
    def outcomes(self) -> Outcomes:
        """The calibration data with labels, from which promises about errors are learnt."""
        if self.predicted is None or self.labels is None:
            raise ValueError("a promise about errors needs labels, the true classes of the calibration inputs.")
        return Outcomes(self.scores, self.predicted, self.labels)
