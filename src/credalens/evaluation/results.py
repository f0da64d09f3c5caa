"""What results are made of: frozen holders that turn into plain values, one value for each method or measure, intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np

from credalens.short_repr import short_repr

T = TypeVar("T")

METHODS: Final = ("credal", "classical")
"""Where an uncertainty comes from: credal sets, or the averaged prediction."""
DETECTORS: Final = ("epistemic", "total")
"""The uncertainties that are used as scores for OOD; aleatoric uncertainty is not about it."""
TOO_FEW: Final = "too few samples"
"""The method of a comparison that was not made: its interval is everything that is possible."""
MEASURES: Final = (*DETECTORS, "aleatoric")


@dataclass(frozen=True)
class Result:
    """What every result can do: turn into plain values, and print itself without its arrays."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__repr__ = short_repr  # type: ignore[method-assign]  # which dataclass() then leaves as it is

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain Python values; NaN and infinities become ``None``, because JSON has neither."""
        return {field.name: plain_value(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class _ByName(Result, Generic[T]):
    """One value for each of a few fixed names, each of them a field."""

    names: ClassVar[tuple[str, ...]]

    @classmethod
    def make(cls, value: Callable[[str], T], /) -> Self:
        """Call ``value`` with each name."""
        return cls(**{name: value(name) for name in cls.names})

    def of(self, name: str, /) -> T:
        """The value of one name."""
        value: T = getattr(self, name)
        return value

    def items(self) -> list[tuple[str, T]]:
        """Every name with its value."""
        return [(name, self.of(name)) for name in self.names]


@dataclass(frozen=True, eq=False)
class ByMethod(_ByName[T]):
    """The same from credal sets and from averaging."""

    names: ClassVar[tuple[str, ...]] = METHODS
    credal: T
    classical: T


@dataclass(frozen=True, eq=False)
class ByDetector(_ByName[T]):
    """The same for both uncertainties that are scores for OOD."""

    names: ClassVar[tuple[str, ...]] = DETECTORS
    epistemic: T
    total: T


@dataclass(frozen=True, eq=False)
class ByMeasure(ByDetector[T]):
    """The same for all three uncertainties."""

    names: ClassVar[tuple[str, ...]] = MEASURES
    aleatoric: T


@dataclass(frozen=True)
class Interval(Result):
    """A metric with its confidence interval [low, high] and the method that made it.

    What ``auroc_interval`` and ``bootstrap_interval`` return.
    """

    value: float
    low: float
    high: float
    level: float
    method: str
    n_id: int
    n_ood: int


@dataclass(frozen=True)
class Comparison(Result):
    """Two scores on the same samples: a - b, its interval [low, high], and the two-sided p-value.

    What ``compare_auroc`` and ``bootstrap_difference`` return.
    """

    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    level: float
    p_value: float
    method: str
    n_id: int
    n_ood: int


def plain_value(value: Any, /) -> Any:
    """Plain Python values for JSON."""
    if isinstance(value, Result):
        return value.as_dict()
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist())
    if isinstance(value, Mapping):
        return {name: plain_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
