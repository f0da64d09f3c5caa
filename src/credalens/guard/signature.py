"""The properties that predictions must share with those that something was fitted on, and the one check of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy, top_class
from credalens.checks.arrays import refuse_values
from credalens.checks.options import (
    check_base,
    check_choice,
    check_count,
    check_same_base,
    check_tolerance,
    check_trim,
    count_text,
)
from credalens.core.scores import SCORES
from credalens.guard.rounding import Slack, difference, is_half, slack_of
from credalens.prediction import CredalPrediction

POINTS: Final = ("intersection", "mean")
DISAGREEMENT: Final = ("epistemic", "mean_epistemic", "mean_pairwise_kl")
CHANGED_BY_HALF: Final = ("mean_pairwise_kl", "set_size")
"""Scores that half precision changes by far more than it does a probability: by what it rounds to zero, or makes a tie."""


@dataclass(frozen=True)
class PredictionKind:
    """Classes, and what the width of intervals depends on."""

    classes: int
    n_members: int
    trim: float
    rounding: float = 0.0  # of the members' probabilities, relatively; any other may come

    @classmethod
    def of(cls, prediction: CredalPrediction, /) -> PredictionKind:
        """The kind of a prediction of at least one input."""
        check_prediction(prediction)
        if 0 in prediction.lower.shape:
            raise ValueError(f"the batch is empty: its shape is {tuple(prediction.lower.shape[:-1])}.")
        return cls(int(prediction.lower.shape[-1]), prediction.n_members, float(prediction.trim), prediction._rounding)

    def check(self, other: PredictionKind, /) -> None:
        """Refuse predictions with other classes, another trim or another number of members: no promise would hold."""
        if other.classes != self.classes:
            raise ValueError(f"this was fitted with {self.classes} classes and the prediction has {other.classes}.")
        if other.trim != self.trim:
            raise ValueError(
                f"this was fitted with trim={self.trim:g} and the prediction has trim={other.trim:g}; "
                f"use wrap(..., trim={self.trim:g})."
            )
        if other.n_members != self.n_members:
            raise ValueError(
                f"this was fitted with {count_text(self.n_members, 'member')} and the prediction has {other.n_members}: "
                "intervals depend on the number of members, so that no promise would hold. Fit it again with "
                f"{count_text(other.n_members, 'member')}."
            )


@dataclass(frozen=True)
class Signature:
    """The kind of the calibration data, and how a score was read from them.

    :ivar score: the score of the catalogue that is compared.
    :ivar point: which point prediction names the class, "intersection" or "mean".
    :ivar base: of the logarithm, which scales scores that measure information.
    """

    score: str
    point: str
    base: float
    kind: PredictionKind

    @classmethod
    def of(cls, prediction: CredalPrediction, /, *, score: str, point: str) -> Signature:
        """The signature of a prediction."""
        kind = PredictionKind.of(prediction)
        return cls(
            check_choice(score, tuple(SCORES), "score"), check_choice(point, POINTS, "point"), prediction.base, kind
        )

    @classmethod
    def restored(cls, fields: dict[str, Any], /) -> Signature:
        """The signature from the fields of a file, where those of its kind stand beside the others."""
        kind = PredictionKind(
            check_count(fields["classes"], "classes", least=2),
            check_count(fields["n_members"], "n_members"),
            check_trim(fields["trim"]),
            check_tolerance(fields["rounding"]),
        )
        score, point = (
            check_choice(fields["score"], tuple(SCORES), "score"),
            check_choice(fields["point"], POINTS, "point"),
        )
        return cls(score, point, check_base(fields["base"]), kind)

    def saved_fields(self) -> dict[str, Any]:
        """The fields that :meth:`restored` reads."""
        return {"score": self.score, "point": self.point, "base": self.base, **asdict(self.kind)}

    def check(self, kind: PredictionKind, base: float, /) -> None:
        """Refuse predictions of a kind, or with entropies in a base, that cannot be compared with the calibration data."""
        self.kind.check(kind)
        if SCORES[self.score].unit == "information":
            check_same_base(base, self.base, f"this guard is for {self.score!r}")
        differ = kind.rounding != self.kind.rounding and is_half(max(kind.rounding, self.kind.rounding))
        if self.score in CHANGED_BY_HALF and differ:
            raise ValueError(
                f"this guard is for {self.score!r}, which half precision changes, and not both of calibration data and "
                "prediction are in the same half precision. Give it members of the precision that it was fitted on, or fit it "
                "again, by another score or on such members."
            )

    def slack(self, rounding: float | None = None, /) -> Slack:
        """The slack that rounding by ``rounding`` gives a score; by default members were rounded as the calibration data."""
        differing = 0.0 if rounding is None else difference(self.kind.rounding, rounding)
        return slack_of(self.score, classes=self.kind.classes, base=self.base, rounding=differing)

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


def read_score(prediction: CredalPrediction, name: str, /) -> Any:
    """One score of a prediction. A single member has no epistemic uncertainty, not even by rounding."""
    values = prediction.score(name)
    return values * 0 if name in DISAGREEMENT and prediction.n_members == 1 else values


def check_prediction(x: Any, /) -> None:
    """Refuse what is not a prediction, such as the members' probabilities themselves, and predictions of maps.

    Entries of a batch of more than one axis are no samples of their own, and promises count samples.
    """
    if not isinstance(x, CredalPrediction):
        raise TypeError(f"expected a CredalPrediction; got {type(x).__name__}. Use wrap(probs).")
    if len(shape := x.lower.shape) > 2:
        raise ValueError(
            f"the batch has {len(shape) - 1} axes, {tuple(shape[:-1])}, and promises are about samples that are exchangeable: "
            "pixels of an image are not, so that hundreds of thousands of them say little more than one, and a promise would "
            "be broken far more often than it says. Make one prediction of each image, such as its mean or worst pixel; if "
            "every entry really is a sample of its own, give them one axis, probs.reshape(members, -1, classes)."
        )
