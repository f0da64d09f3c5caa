"""What predictions must have in common with those that something was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from credalens.checks.counted import count_text
from credalens.prediction import CredalPrediction


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

    def check(self, prediction: CredalPrediction, /) -> None:
        """Refuse a prediction with other classes, another trim or another number of members: no promise would hold."""
        other = PredictionKind.of(prediction)
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


def _check_samples(shape: Sequence[int], /) -> None:
    """Refuse a batch of more than one axis, such as maps: its entries are no samples of their own, and promises count samples.

    ``shape`` is (*batch, classes).
    """
    if len(shape) > 2:
        raise ValueError(
            f"the batch has {len(shape) - 1} axes, {tuple(shape[:-1])}, and promises are about samples that are exchangeable: "
            "pixels of an image are not, so that hundreds of thousands of them say little more than one, and a promise would "
            "be broken far more often than it says. Make one prediction of each image, such as its mean or worst pixel; if "
            "every entry really is a sample of its own, give them one axis, probs.reshape(members, -1, classes)."
        )


def check_prediction(x: Any, /) -> None:
    """Refuse what is not a prediction, such as the members' probabilities themselves, and predictions of maps."""
    if not isinstance(x, CredalPrediction):
        raise TypeError(f"expected a CredalPrediction; got {type(x).__name__}. Use wrap(probs).")
    _check_samples(x.lower.shape)
