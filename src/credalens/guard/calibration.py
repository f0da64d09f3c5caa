"""What a guard learns from: scores of calibration inputs, the predicted and the true classes, and how they were made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy, top_class
from credalens.checks.bad_values import refuse_values
from credalens.checks.labels import read_labels, warn_shifted_labels
from credalens.checks.options import check_choice, check_same_base
from credalens.core.scores import SCORES
from credalens.guard.prediction_kind import PredictionKind, check_prediction
from credalens.guard.rounding import Slack, difference, is_half, slack_of
from credalens.prediction import CredalPrediction

POINTS: Final = ("intersection", "mean")
DISAGREEMENT: Final = ("epistemic", "mean_epistemic", "mean_pairwise_kl")
CHANGED_BY_HALF: Final = ("mean_pairwise_kl", "set_size")
"""Scores that half precision changes by far more than it does a probability: by what it rounds to zero, or makes a tie."""


@dataclass(frozen=True, eq=False)
class Signature:
    """What predictions have in common with those of the calibration data.

    :ivar score: the score of the catalogue that is compared.
    :ivar point: which point prediction names the class, "intersection" or "mean".
    :ivar base: of the logarithm, which scales scores that measure information.
    :ivar rounding: of the members' probabilities, relatively.
    """

    score: str
    point: str
    base: float
    classes: int
    n_members: int
    trim: float
    rounding: float

    def check(self, prediction: CredalPrediction, /) -> None:
        """Refuse a prediction whose scores cannot be compared with those of the calibration data."""
        PredictionKind(self.classes, self.n_members, self.trim).check(prediction)
        if SCORES[self.score].unit == "information":
            check_same_base(prediction.base, self.base, f"this guard is for {self.score!r}")
        if self.score in CHANGED_BY_HALF and is_half(prediction._rounding) != is_half(self.rounding):
            raise ValueError(
                f"this guard is for {self.score!r}, which half precision changes, and not both of calibration data and "
                "prediction are in half precision. Give it members of the precision that it was fitted on, or fit it again, by "
                "another score or on such members."
            )

    def slack(self, rounding: float | None = None, /) -> Slack:
        """What rounding explains of a score whose members were rounded by ``rounding``, by default as the calibration data."""
        differing = 0.0 if rounding is None else difference(self.rounding, rounding)
        return slack_of(self.score, classes=self.classes, base=self.base, rounding=differing)

    def scores_of(self, prediction: CredalPrediction, /) -> NDArray[np.float64]:
        """The score of every input in the shape of the batch."""
        values = to_numpy(read_score(prediction, self.score))[0].astype(np.float64, copy=False)
        if np.isnan(values.sum()):  # one pass over numbers that are never NaN as wrap makes them
            refuse_values(np.isnan(values), values, "scores", "NaN", "A missing score has no rank: find its cause.")
        return values

    def predicted(self, prediction: CredalPrediction, /) -> Any:
        """The class that is named, (*batch), as an array of the caller's library."""
        return (
            prediction.predict() if self.point == "intersection" else top_class(prediction.mean, ties=prediction.mean)
        )


def signature_of(prediction: CredalPrediction, /, *, score: str, point: str) -> Signature:
    """The signature of a prediction."""
    check_prediction(prediction)
    check_choice(score, tuple(SCORES), "score")
    check_choice(point, POINTS, "point")
    return Signature(
        score,
        point,
        prediction.base,
        int(prediction.lower.shape[-1]),
        prediction.n_members,
        float(prediction.trim),
        prediction._rounding,
    )


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How predictions of calibration inputs turned out: their scores, the predicted and the true classes, (n,) each."""

    scores: NDArray[np.float64]
    predicted: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Calibration(Signature):
    """Scores (n,), and with labels the predicted and the true classes (n,)."""

    values: NDArray[np.float64]
    predicted_classes: NDArray[np.int64] | None = None
    labels: NDArray[np.int64] | None = None

    @property
    def outcomes(self) -> Outcomes:
        """What promises about errors are learnt from."""
        if self.predicted_classes is None or self.labels is None:
            raise ValueError("a promise about errors needs labels, the true classes of the calibration inputs.")
        return Outcomes(self.values, self.predicted_classes, self.labels)


def observe(prediction: CredalPrediction, labels: Any = None, /, *, score: str, point: str) -> Calibration:
    """What a guard needs of some calibration inputs."""
    signature = signature_of(prediction, score=score, point=point)
    own = {field.name: getattr(signature, field.name) for field in fields(signature)}
    values = signature.scores_of(prediction).ravel()
    if labels is None:
        return Calibration(**own, values=values)
    truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape))
    named = to_numpy(signature.predicted(prediction))[0].astype(np.int64)
    warn_shifted_labels(truth, named, stacklevel=4)
    return Calibration(**own, values=values, predicted_classes=named.ravel(), labels=truth.ravel())


def read_score(prediction: CredalPrediction, name: str, /) -> Any:
    """One score of a prediction. A single member has no epistemic uncertainty, not even by rounding."""
    values = prediction.score(name)
    return values * 0 if name in DISAGREEMENT and prediction.n_members == 1 else values
