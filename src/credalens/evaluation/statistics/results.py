"""The frozen holders of results that several evaluations share."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

__all__ = ["Comparison", "Interval", "Result"]


@dataclass(frozen=True)
class Result:
    """What every result can do: turn into plain values."""

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain Python values; NaN and infinities become ``None``, because JSON has neither."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class Interval(Result):
    """A metric with its confidence interval [low, high] and the method that made it."""

    value: float
    low: float
    high: float
    level: float
    method: str
    n_id: int
    n_ood: int


@dataclass(frozen=True)
class Comparison(Result):
    """Two scores on the same samples: a - b, the interval [low, high] of that, and the two-sided p-value."""

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


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.as_dict()
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value.tolist()]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
