"""The properties that predictions must share with those that something was fitted on, and the one check of them.

Differences that rounding explains are none: the same members in float32 and float64, at once or as a summary, on a CPU or a
GPU, give scores that differ in their last digits. Promises must not hang on those, above all where many inputs share a
score. So an input is called unlike, risky or more uncertain than another only if rounding cannot explain it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ROUNDING, ROUNDINGS, is_of_one_dtype, to_numpy, top_class
from credalens.checks.arrays import read_columns, read_labels, refuse_values, warn_shifted_labels
from credalens.checks.options import check_choice, check_same_base, check_temperatures, count_text
from credalens.core.hartley import EXACT_CLASSES, TOLERANCE
from credalens.core.scores import SCORES
from credalens.prediction import CredalPrediction

POINTS: Final = ("intersection", "mean")
HALF: Final = ROUNDING["float16"]
"""The rounding from which on members were in half precision: probabilities below 6e-8 or digits after the third are lost."""
DIGITS: Final = 2.0**-17
"""Relative, and in bits or probability: four times what a GPU's float32 entropies may be off by, ten times those of a CPU."""


@dataclass(frozen=True)
class Slack:
    """By how much a score may be off: ``absolute`` and a share ``relative`` of it."""

    absolute: float = 0.0
    relative: float = 0.0

    @property
    def largest(self) -> float:
        """Both in one number, as `DriftAlarm` takes it."""
        return max(self.absolute, self.relative)

    def lowest(self, scores: Any, /) -> Any:
        """The lowest scores that these may stand for."""
        return scores - self._of(scores)

    def highest(self, scores: Any, /) -> Any:
        """The highest scores that these may stand for."""
        return scores + self._of(scores)

    def _of(self, scores: Any) -> Any:
        return self.absolute + self.relative * np.minimum(np.abs(scores), np.finfo(np.float64).max / 2)


EXACT, ORDINARY = Slack(), Slack(DIGITS, DIGITS)
"""Of numbers as they are, and of scores in bits or probability whose members have at least the digits of float32."""


def slack_of(score: str, /, *, classes: int, base: float, rounding: float = 0.0) -> Slack:
    """Of a score of the catalogue; ``rounding`` is what the members' probabilities may differ by, relatively.

    >>> slack_of("total", classes=10, base=2).absolute < 1e-5
    True
    """
    unit = 1.0 / math.log2(base) if SCORES[score].unit == "information" else 1.0
    relative = DIGITS + ROUNDINGS * rounding
    bracket = TOLERANCE if score == "hartley" and classes > EXACT_CLASSES else 0.0
    return Slack(unit * (relative + bracket), relative)


def difference(fitted: float, used: float, /) -> float:
    """The largest relative difference between probabilities of members rounded by ``fitted`` and by ``used``.

    Nothing, where all are of the same dtype: inputs that are alike were rounded alike. Of float32 and float64 it is far below
    `DIGITS`.
    """
    return 0.0 if fitted == used and is_of_one_dtype(fitted) else max(fitted, used)


@dataclass(frozen=True)
class Signature:
    """Properties of predictions: their classes, and what widths of intervals and the unit of entropies depend on.

    :ivar rounding: of the members' probabilities, relatively; predictions with any other may come.
    :ivar base: of the logarithm; it matters only where a score that measures information is compared.
    :ivar temperatures: that members were divided by; none if they were not recalibrated.
    """

    classes: int
    n_members: int
    trim: float
    rounding: float = 0.0
    base: float = 2.0
    temperatures: tuple[float, ...] = ()

    @classmethod
    def of(cls, prediction: CredalPrediction, /) -> Signature:
        """The signature of a prediction of at least one input."""
        check_prediction(prediction)
        if 0 in prediction.lower.shape:
            raise ValueError(f"the batch is empty: its shape is {tuple(prediction.lower.shape[:-1])}.")
        classes, trim = int(prediction.lower.shape[-1]), float(prediction.trim)
        return cls(classes, prediction.n_members, trim, prediction._rounding, prediction.base, prediction.temperatures)

    @classmethod
    def restored(cls, fields: dict[str, Any], /) -> Signature:
        """The signature from the fields of a file; earlier ones know no temperatures."""
        return cls(**{**fields, "temperatures": check_temperatures(fields.get("temperatures", []))})

    def without_base(self) -> dict[str, Any]:
        """The fields of files of what compares probabilities, not scores."""
        return {name: value for name, value in vars(self).items() if name != "base"}

    def check(self, other: Signature, /, *, score: str | None = None) -> None:
        """Refuse predictions of which no promise would hold; ``score`` is the one that is compared, if one is."""
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
        if other.temperatures != self.temperatures:
            raise ValueError(
                f"this was fitted on {_recalibrated(self)} and the prediction has {_recalibrated(other)}: scores and "
                "probabilities change with the temperature, so that no promise would hold. Use the same recalibration= "
                "(--recalibration) as for its calibration data, or fit it again."
            )
        if score is not None and SCORES[score].unit == "information":
            check_same_base(other.base, self.base, f"this guard is for {score!r}")
        differ = other.rounding != self.rounding and max(other.rounding, self.rounding) >= HALF
        if score is not None and SCORES[score].changed_by_half and differ:
            raise ValueError(
                f"this guard is for {score!r}, which half precision changes, and not both of calibration data and "
                "prediction are in the same half precision. Give it members of the precision that it was fitted on, or fit it "
                "again, by another score or on such members."
            )

    def slack(self, score: str, rounding: float | None = None, /) -> Slack:
        """The slack that rounding by ``rounding`` gives a score; by default members were rounded as the calibration data."""
        sharpened = max((1.0, *(1 / t for t in self.temperatures)))
        differing = 0.0 if rounding is None else sharpened * difference(self.rounding, rounding)
        return slack_of(score, classes=self.classes, base=self.base, rounding=differing)


def _recalibrated(signature: Signature) -> str:
    temperatures = sorted({*signature.temperatures})
    if not temperatures:
        return "members as they are"
    return (
        f"members recalibrated by {' to '.join(f'{t:.4g}' for t in dict.fromkeys((temperatures[0], temperatures[-1])))}"
    )


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


def read_score(prediction: CredalPrediction, name: str, /) -> Any:
    """One score of a prediction. A single member has no epistemic uncertainty, not even by rounding."""
    values = prediction.score(name)
    return values * 0 if SCORES[name].disagreement and prediction.n_members == 1 else values


def scores_of(prediction: CredalPrediction, name: str, /) -> NDArray[np.float64]:
    """One score of every input in float64, in the shape of the batch; NaN is refused, as are predictions of maps."""
    check_prediction(prediction)
    values = to_numpy(read_score(prediction, name))[0].astype(np.float64, copy=False)
    if np.isnan(values.sum()):  # one pass over numbers that are never NaN as wrap makes them
        refuse_values(np.isnan(values), values, "scores", "NaN", "A missing score has no rank: find its cause.")
    return values


def named_class(prediction: CredalPrediction, point: str, /) -> Any:
    """The class that a point prediction names, (*batch), as an array of the caller's library."""
    if point == "mean" and not prediction._has_mean:
        raise ValueError("this prediction was made from intervals without a mean; use point='intersection'.")
    return prediction.predict() if point == "intersection" else top_class(prediction.mean, ties=prediction.mean)


@dataclass(frozen=True, eq=False)
class CalibrationData:
    """Calibration data of a guard: scores (n,) of predictions, and with labels the predicted and the true classes (n,).

    :ivar signature: of these predictions.
    :ivar score: the score of the catalogue that is compared.
    :ivar point: which point prediction names the class, "intersection" or "mean".
    :ivar groups: column -> the value of every input, as text.
    """

    signature: Signature
    score: str
    point: str
    scores: NDArray[np.float64]
    predicted: NDArray[np.int64] | None = None
    labels: NDArray[np.int64] | None = None
    groups: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, prediction: CredalPrediction, labels: Any = None, groups: Mapping[str, Any] | None = None, /, *, score: str,
        point: str,
    ) -> CalibrationData:  # fmt: skip
        """Extract what a guard needs from predictions of calibration inputs."""
        check_prediction(prediction)
        if 0 in prediction.lower.shape:
            raise ValueError("the calibration data are empty; a guard needs inputs like those it will meet.")
        check_choice(score, tuple(SCORES), "score")
        check_choice(point, POINTS, "point")
        data = cls(Signature.of(prediction), score, point, scores_of(prediction, score).ravel())
        if labels is None:
            if groups:
                raise ValueError("a promise in every group needs labels, the true classes of the calibration inputs.")
            return data
        truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape))
        named = to_numpy(named_class(prediction, point))[0].astype(np.int64)
        warn_shifted_labels(truth, named, stacklevel=4)
        columns = read_columns(groups, truth.size)
        return cls(data.signature, score, point, data.scores, named.ravel(), truth.ravel(), columns)
