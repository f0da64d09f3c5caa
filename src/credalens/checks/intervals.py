"""Lower and upper bounds: ordered, not empty, reachable."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ROUNDING, ArrayKind, rounding, to_numpy
from credalens.checks.arrays import as_array, check_classes, index_in, refuse_values, row_tolerance

CHUNK = 1 << 16  # values
EXACT = 1e-14  # a sum this close to one is left as it is
FOR_KERNELS: Final = ("C", "A", "W", "E")  # contiguous, aligned, writeable, no subclass
SMALLEST_FLOAT16 = 2.0**-24  # those of the other dtypes are far below anything that counts here


@dataclass(frozen=True)
class IntervalArray:
    """Bounds (rows, classes), their batch shape, and the kind of array and the two dtypes they came in.

    In float64 but for those of `computed_intervals` and `read_unrepaired_intervals`.

    :ivar of_members: the relative rounding of the members they were computed from.
    """

    lower: NDArray
    upper: NDArray
    batch: tuple[int, ...]
    array_kind: ArrayKind
    dtypes: tuple[str, str]
    of_members: float = 0.0

    @property
    def rounding(self) -> float:
        """The relative rounding of the narrower of the two dtypes, and of members that were narrower."""
        return max(self.of_members, *map(rounding, self.dtypes))

    @property
    def smallest(self) -> float:
        """The error of two bounds near zero together: the smallest positive number of float16 where that may be one."""
        return SMALLEST_FLOAT16 if "float16" in self.dtypes or self.of_members >= ROUNDING["float16"] else 0.0

    def repaired(self) -> IntervalArray:
        """The same with sum(lower) <= 1 <= sum(upper), where the rounding of a narrower dtype prevents it."""
        below, above = _row_sums(self.lower), _row_sums(self.upper)
        low, high = self.lower, self.upper
        if (below > 1 + EXACT).any():
            low = low / np.where(below > 1 + EXACT, below, 1.0)[:, None]
        if (above < 1 - EXACT).any():
            high = high / np.where(above < 1 - EXACT, above, 1.0)[:, None]
        return replace(self, lower=low, upper=np.maximum(np.minimum(high, 1.0), low))

    def restore(self, array: NDArray, /) -> Any:
        """``array`` (rows, ...) in the caller's batch shape, precision and library."""
        return self.array_kind.restore_rows(array, self.batch)


def _row_sums(x: NDArray) -> NDArray:
    return np.einsum("rc->r", x)  # several times as fast as x.sum(axis=-1) for few classes


def read_intervals(lower: Any, upper: Any, /, *, reachable: bool = True) -> IntervalArray:
    """Validate bounds: same shape, 0 <= lower <= upper <= 1, a non-empty credal set and (by default) reachable bounds.

    Sums that miss one by rounding are repaired, so that sum(lower) <= 1 <= sum(upper) holds afterwards.
    """
    return _checked(lower, upper, np.float64, reachable).repaired()


def read_unrepaired_intervals(lower: Any, upper: Any, /) -> IntervalArray:
    """The same in float32 if the bounds have no more digits, and not repaired: for kernels that repair sums."""
    return _checked(lower, upper, None, True)


def _checked(lower: Any, upper: Any, dtype: type | None, reachable: bool) -> IntervalArray:
    low, high = as_array(lower, "lower"), as_array(upper, "upper")
    shape = low[0].shape
    if shape != high[0].shape:
        raise ValueError(f"lower and upper must have the same shape; got {shape} and {high[0].shape}.")
    if not shape:
        raise ValueError("lower and upper must have shape (*batch, classes); got two scalars.")
    check_classes(shape[-1], "lower", shape)
    if dtype is None:
        dtype = np.float32 if np.result_type(low[0], high[0], np.float32) == np.float32 else np.float64
    intervals = _interval_array(*low, *high, dtype=dtype)
    step = max(1, CHUNK // shape[-1])  # so that temporary arrays are small; for an error all rows are counted
    for start in range(0, len(intervals.lower), step):
        try:
            _check(intervals, slice(start, start + step), reachable)
        except ValueError:
            _check(intervals, slice(None), reachable)
            raise
    return intervals


def _check(intervals: IntervalArray, rows: slice, reachable: bool) -> None:
    """Refuse bounds that are out of order, empty, or not reached."""
    low, high = (x[rows].astype(np.float64, copy=False) for x in (intervals.lower, intervals.upper))
    tolerance, batch = max(map(row_tolerance, intervals.dtypes)), intervals.batch  # of sums on the wrong side of one
    good = (low >= 0) & (high <= 1 + tolerance) & (low <= high)  # NaN compares false
    if not good.all():
        row, k = index_in(int(good.argmin()), good.shape)
        raise ValueError(
            f"bounds must satisfy 0 <= lower <= upper <= 1; {int((~good).sum())} of {good.size} do not, the first is at index "
            f"{(*index_in(row, batch), k)}: lower={low[row, k]:.6g}, upper={high[row, k]:.6g}. Did you swap them, or pass "
            "logits?"
        )
    below, above = _row_sums(low), _row_sums(high)
    if (bad := (below > 1 + tolerance) | (above < 1 - tolerance)).any():
        row = int(bad.argmax())
        raise ValueError(
            f"{int(bad.sum())} of {bad.size} interval systems are empty; the first is at index {index_in(row, batch)}: "
            f"sum(lower)={below[row]:.6g}, sum(upper)={above[row]:.6g}. A credal set needs sum(lower) <= 1 <= sum(upper). Did "
            "you pass logits, or bounds from different inputs?"
        )
    if not reachable:
        return
    repaired = replace(intervals, lower=low, upper=high).repaired()
    low, high = repaired.lower, repaired.upper
    too_low = 1 - (_row_sums(high)[:, None] - high) > low + tolerance
    if (bad := too_low | (1 - (_row_sums(low)[:, None] - low) < high - tolerance)).any():
        row, k = index_in(int(bad.argmax()), bad.shape)
        side, value = ("lower", low[row, k]) if too_low[row, k] else ("upper", high[row, k])
        raise ValueError(
            f"{int(bad.any(axis=-1).sum())} of {len(bad)} interval systems have bounds that no distribution reaches; the first "
            f"is at index {(*index_in(row, batch), k)}: {side}={value:.6g} leaves no room for the other classes. "
            "Call ProbabilityIntervals(lower, upper).tighten() first."
        )


def check_mean(mean: NDArray, intervals: IntervalArray, /) -> None:
    """Refuse means (rows, classes) of other rows than the bounds, or outside of them by more than rounding."""
    if mean.shape != intervals.lower.shape:
        shape = (*intervals.batch, intervals.lower.shape[-1])
        raise ValueError(f"mean must have the shape {shape} of the bounds; got {mean.size} values.")
    tolerance = max(map(row_tolerance, intervals.dtypes))
    outside = (mean < intervals.lower - tolerance) | (mean > intervals.upper + tolerance)
    refuse_values(outside, mean, "values of mean", "outside their intervals", "It must be a member of the credal set.")


def trusted_intervals(lower: Any, upper: Any, /) -> IntervalArray:
    """Bounds that were validated or computed before: nothing is checked, sums that miss one by rounding are repaired."""
    return _interval_array(*to_numpy(lower), *to_numpy(upper)).repaired()


def computed_intervals(lower: Any, upper: Any, /, *, of_members: float = 0.0) -> IntervalArray:
    """Bounds that ``wrap`` computed, in their own precision, neither checked nor repaired: for kernels that repair sums."""
    return replace(_interval_array(*to_numpy(lower), *to_numpy(upper), dtype=None), of_members=of_members)


def _interval_array(
    low: NDArray, kind: ArrayKind, high: NDArray, other: ArrayKind, *, dtype: type | None = np.float64
) -> IntervalArray:
    batch, classes = low.shape[:-1], low.shape[-1]
    rows = math.prod(batch), classes
    low, high = (np.require(x, dtype, FOR_KERNELS).reshape(rows) for x in (low, high))
    return IntervalArray(low, high, batch, kind, (kind.dtype, other.dtype))
