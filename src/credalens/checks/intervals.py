"""Lower and upper bounds that users bring: ordered, not empty, reachable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind
from credalens.checks.arrays import as_array, check_classes, index_in, restored, rounding, row_tolerance

__all__ = ["Intervals", "check_same_classes", "read_intervals"]

EXACT = 1e-14  # a sum this close to one is left as it is
SMALLEST = 2.0**-24  # of float16; those of the other dtypes are far below anything that counts here


@dataclass(frozen=True)
class Intervals:
    """Bounds as float64 (rows, classes), non-empty and reachable, and where they came from."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    batch: tuple[int, ...]
    array_kind: ArrayKind
    rounding: float
    """The relative rounding of the narrower of the two dtypes."""
    smallest: float
    """What two bounds near zero may be off by together: the smallest positive number of float16 where it is one of them."""

    def restore(self, array: NDArray, /) -> Any:
        """Give ``array`` (rows, ...) the caller's batch shape, precision and library."""
        return restored(array, self.batch, self.array_kind)


def read_intervals(lower: Any, upper: Any, /, *, reachable: bool = True) -> Intervals:
    """Validate bounds: same shape, 0 <= lower <= upper <= 1, a non-empty credal set and (by default) reachable bounds.

    Sums that miss one by rounding are repaired, so that sum(lower) <= 1 <= sum(upper) holds afterwards.
    """
    low, array_kind = as_array(lower, "lower")
    high, other = as_array(upper, "upper")
    if low.shape != high.shape:
        raise ValueError(f"lower and upper must have the same shape; got {low.shape} and {high.shape}.")
    if low.ndim == 0:
        raise ValueError("lower and upper must have shape (*batch, classes); got two scalars.")
    check_classes(low.shape[-1], "lower", low.shape)
    tolerance = max(row_tolerance(array_kind.dtype), row_tolerance(other.dtype))
    batch, classes = low.shape[:-1], low.shape[-1]
    low = np.array(low, dtype=np.float64, order="C").reshape(math.prod(batch), classes)
    high = np.array(high, dtype=np.float64, order="C").reshape(math.prod(batch), classes)
    _check_bounds(low, high, batch, tolerance)
    _check_not_empty(low, high, batch, tolerance)
    _repair(low, high)
    if reachable:
        _check_reachable(low, high, batch, tolerance)
    dtypes = array_kind.dtype, other.dtype
    return Intervals(low, high, batch, array_kind, max(map(rounding, dtypes)), SMALLEST if "float16" in dtypes else 0.0)


def _check_bounds(low: NDArray, high: NDArray, batch: tuple[int, ...], tolerance: float) -> None:
    good = (low >= 0) & (high <= 1 + tolerance) & (low <= high)  # NaN compares false
    if good.all():
        return
    row, k = index_in(int(good.argmin()), good.shape)
    where = (*index_in(row, batch), k)
    raise ValueError(
        f"bounds must satisfy 0 <= lower <= upper <= 1; {int((~good).sum())} of {good.size} do not, the first is at index "
        f"{where}: lower={low[row, k]:.6g}, upper={high[row, k]:.6g}. Did you swap them, or pass logits?"
    )


def _check_not_empty(low: NDArray, high: NDArray, batch: tuple[int, ...], tolerance: float) -> None:
    below, above = low.sum(axis=-1), high.sum(axis=-1)
    bad = (below > 1 + tolerance) | (above < 1 - tolerance)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"{int(bad.sum())} of {bad.size} interval systems are empty; the first is at index {index_in(row, batch)}: "
            f"sum(lower)={below[row]:.6g}, sum(upper)={above[row]:.6g}. A credal set needs sum(lower) <= 1 <= sum(upper). "
            "Did you pass logits, or bounds from different inputs?"
        )


def _repair(low: NDArray, high: NDArray) -> None:
    """Scale bounds whose sums are on the wrong side of one by the rounding of a narrower dtype."""
    below, above = low.sum(axis=-1, keepdims=True), high.sum(axis=-1, keepdims=True)
    low /= np.where(below > 1 + EXACT, below, 1.0)
    high /= np.where(above < 1 - EXACT, above, 1.0)
    np.minimum(high, 1.0, out=high)
    np.maximum(high, low, out=high)


def _check_reachable(low: NDArray, high: NDArray, batch: tuple[int, ...], tolerance: float) -> None:
    too_low = 1 - (high.sum(axis=-1, keepdims=True) - high) > low + tolerance
    too_high = 1 - (low.sum(axis=-1, keepdims=True) - low) < high - tolerance
    bad = too_low | too_high
    if not bad.any():
        return
    row, k = index_in(int(bad.argmax()), bad.shape)
    side, value = ("lower", low[row, k]) if too_low[row, k] else ("upper", high[row, k])
    where = (*index_in(row, batch), k)
    raise ValueError(
        f"{int(bad.any(axis=-1).sum())} of {len(bad)} interval systems have bounds that no distribution reaches; the first is "
        f"at index {where}: {side}={value:.6g} leaves no room for the other classes. "
        "Call ProbabilityIntervals(lower, upper).tighten() first."
    )


def check_same_classes(shape: tuple[int, ...], classes: int, batch: tuple[int, ...], name: str) -> None:
    """Distributions (..., *batch, classes) that go with intervals (*batch, classes)."""
    fits = len(shape) >= 1 and shape[-1] == classes
    try:
        np.broadcast_shapes(shape[:-1], batch)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} must have shape (..., {', '.join(map(str, (*batch, classes)))}) to go with intervals of shape "
            f"{(*batch, classes)}; got {shape}."
        )
