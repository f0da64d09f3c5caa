"""Error rates that must not be exceeded, and what was promised about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import check_choice, check_count, check_fraction

CLASS_BY: Final = ("true", "predicted")


@dataclass(frozen=True)
class Risk:
    """The error rate of all accepted inputs, or of those of one class.

    :ivar of_class: None for all classes.
    :ivar class_by: whether inputs belong to a class by their "true" or by their "predicted" class.
    """

    max_error: float
    of_class: int | None = None
    class_by: str = "true"

    @property
    def name(self) -> str:
        """In words."""
        return "error rate" if self.of_class is None else f"error rate of {self.class_by} class {self.of_class}"

    def concerns(self, predicted: NDArray, labels: NDArray, /) -> NDArray[np.bool_]:
        """Which inputs it is about."""
        if self.of_class is None:
            return np.ones(len(labels), bool)
        return (labels if self.class_by == "true" else predicted) == self.of_class


@dataclass(frozen=True)
class Promise(Risk):
    """A risk that was tested: ``errors`` of ``accepted`` calibration inputs, and the p-value of that.

    The confidence counts all calibration data, also those for which nothing can be promised. Where these are most, a guard that
    is returned owes that to luck more often. How many they would be, with as many inputs and the same error rate at all limits:

    :ivar bound: the error rate that these numbers rule out at the same confidence, at most ``max_error``.
    :ivar refused: the share of calibration data that would be refused if the error rate is the observed one.
    :ivar highest: the highest error rate that these numbers allow, the upper end of its exact 95 % interval.
    :ivar refused_at_highest: the share that would be refused if it is that; all that are not break the promise where
        ``highest`` is above ``max_error``.
    """

    confidence: float = 0.95
    accepted: int = 0
    errors: int = 0
    p_value: float = 1.0
    bound: float = 1.0
    refused: float | None = None  # as in files of older versions
    highest: float | None = None
    refused_at_highest: float | None = None


def read_risks(
    max_error: float | None, max_class_error: float | Mapping[int, float] | None, class_by: str, classes: int, /
) -> tuple[Risk, ...]:
    """The risks that a caller asks for; ``max_class_error`` is one number for every class, or class -> number."""
    check_choice(class_by, CLASS_BY, "class_by")
    risks = [] if max_error is None else [Risk(check_fraction(max_error, "max_error"))]
    return (*risks, *(_class_risk(*entry, class_by, classes) for entry in _by_class(max_class_error, classes)))


def _by_class(rates: Any, classes: int) -> list[tuple[Any, Any]]:
    if isinstance(rates, Mapping):
        return list(rates.items())
    return [] if rates is None else [(of_class, rates) for of_class in range(classes)]


def _class_risk(of_class: Any, rate: Any, class_by: str, classes: int) -> Risk:
    place = check_count(of_class, "a class of max_class_error", least=0, most=classes - 1)
    return Risk(check_fraction(rate, "max_class_error"), place, class_by)
