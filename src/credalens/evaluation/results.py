"""Parts of results: holders that turn into plain values, one value for each method or measure, metrics with intervals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeVar

import numpy as np

from credalens.arrays import short_repr

T = TypeVar("T")

METHODS: Final = ("credal", "averaged")
"""The two ways to predict: by credal sets, or by the average of the members."""
DETECTORS: Final = ("epistemic", "total")
"""The uncertainties that are used as scores for OOD; aleatoric uncertainty is not about it."""
MEASURES: Final = (*DETECTORS, "aleatoric")
TOO_FEW: Final = "too few samples"
"""The method of a comparison that was not made: its interval is everything that is possible."""
LESS_IS_BETTER: Final = frozenset({"fpr95", "ece", "nll", "aurc"})


@dataclass(frozen=True)
class Result:
    """A result that turns into plain values, and prints itself without its arrays."""

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
        return getattr(self, name)

    def items(self) -> list[tuple[str, T]]:
        """Every name with its value."""
        return [(name, self.of(name)) for name in self.names]


def renamed(old: str, new: str, /) -> Any:
    """The attribute ``new`` under its earlier name, which warns."""

    def read(result: Any) -> Any:
        warnings.warn(f"{type(result).__name__}.{old} is now .{new}.", DeprecationWarning, stacklevel=2)
        return getattr(result, new)

    return property(read)


@dataclass(frozen=True, eq=False)
class ByMethod(_ByName[T]):
    """The same from credal sets and from the average of the members."""

    names: ClassVar[tuple[str, ...]] = METHODS
    credal: T
    averaged: T
    classical: ClassVar[Any] = renamed("classical", "averaged")


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

    Result of ``auroc_interval`` and ``bootstrap_interval``.
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
    """A metric of a minus that of b, on the same samples, with its interval [low, high] and the two-sided p-value.

    Result of ``compare_auroc`` and ``bootstrap_difference``.
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

    @property
    def verdict(self) -> Literal["better", "worse", "undecided"]:
        """Whether a is better than b, by whether the interval lies on one side of zero."""
        if self.low <= 0 <= self.high:
            return "undecided"
        return "better" if (self.low > 0) != (self.metric in LESS_IS_BETTER) else "worse"


@dataclass(frozen=True)
class Settings(Result):
    """Settings of an evaluation; members were divided by ``temperatures``, if there are any."""

    base: float
    logits: bool
    bins: int
    false_alarm_rate: float
    level: float
    replicates: int
    seed: int
    temperatures: tuple[float, ...] = ()


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
