"""The only place that validates arrays and words errors: what was expected, what came, where, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import Origin, origin_of, to_numpy

__all__ = [
    "Intervals",
    "Members",
    "check_base",
    "check_choice",
    "check_classes",
    "check_few_classes",
    "check_max_nodes",
    "check_member_axis",
    "check_merge",
    "check_not_empty_summary",
    "check_reduced_classes",
    "check_same_classes",
    "check_subset",
    "check_threads",
    "check_tolerance",
    "raise_bad_rows",
    "raise_no_members",
    "raise_without_members",
    "read_array",
    "read_distributions",
    "read_intervals",
    "read_logits",
    "read_members",
    "row_tolerance",
]

# How far a row of probabilities may be from summing to one. A float64 array often holds what a float32 softmax gave.
ROW_TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "float64": 1e-5}
REAL_DTYPES = ("float", "bfloat", "int", "uint", "bool")
EXACT = 1e-14  # a sum this close to one is left as it is
NOT_PROBABILITIES = "If these are logits, call wrap_logits; if they are counts or votes, divide by their sum first."


@dataclass(frozen=True)
class Members:
    """Member predictions as (members, rows, classes), C-contiguous and never copied, and where they came from."""

    array: NDArray
    batch: tuple[int, ...]
    origin: Origin

    def read(self) -> Members:
        """Themselves; members on a GPU have to be fetched."""
        return self

    def rows(self, start: int, stop: int) -> tuple[NDArray, int, int]:
        """An array that kernels can read and where these rows are in it; narrow floats are widened piece by piece."""
        if self.array.dtype in (np.float32, np.float64):
            return self.array, start, stop
        part = self.array[:, start:stop].astype(self.origin.result_dtype, order="C")
        return part, 0, stop - start

    def restore(self, array: NDArray, /) -> Any:
        """Give ``array`` (rows, ...) the caller's batch shape, precision and library."""
        return _restore(array, self.batch, self.origin)


@dataclass(frozen=True)
class Intervals:
    """Bounds as float64 (rows, classes), non-empty and reachable, and where they came from."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    batch: tuple[int, ...]
    origin: Origin

    def restore(self, array: NDArray, /) -> Any:
        """Give ``array`` (rows, ...) the caller's batch shape, precision and library."""
        return _restore(array, self.batch, self.origin)


def _restore(array: NDArray, batch: tuple[int, ...], origin: Origin) -> Any:
    shaped = array.reshape(batch + array.shape[1:])
    if shaped.dtype.kind == "f":
        shaped = shaped.astype(origin.result_dtype, copy=False)
    return origin.restore(shaped)


def row_tolerance(dtype: str, /) -> float:
    """How far from one a row's sum may be for an array of this dtype."""
    return ROW_TOLERANCE.get(dtype, ROW_TOLERANCE["float64"])


def check_base(base: float, /) -> float:
    """The logarithm's base as a float: finite and above 1."""
    if isinstance(base, bool) or not isinstance(base, int | float | np.number):
        raise TypeError(f"base must be a number above 1, such as 2 (bits) or math.e (nats); got {base!r}.")
    if not (math.isfinite(base) and base > 1):
        raise ValueError(f"base must be finite and above 1, such as 2 (bits) or math.e (nats); got {base!r}.")
    return float(base)


def _as_array(x: Any, name: str) -> tuple[NDArray, Origin]:
    """``x`` as a numeric NumPy array, or an error that says what it was."""
    _refuse_mask(x, name)
    try:
        array, origin = to_numpy(x)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} must be a rectangular array of numbers; got {type(x).__name__} that does not form one ({error}). "
            "Give every row the same number of entries."
        ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must hold real numbers; got dtype {array.dtype} from {type(x).__name__}. "
            "Convert it to floating point first."
        )
    return array, origin


def _refuse_mask(x: Any, name: str) -> None:
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and masks are not understood; select the rows you want first.")


def read_array(x: Any, name: str) -> Any:
    """``x`` in its own library, or as a NumPy array if it has none; of real numbers in any case."""
    _refuse_mask(x, name)
    if not hasattr(x, "shape"):
        array, origin = _as_array(x, name)
        return origin.restore(array)
    dtype = origin_of(x).dtype
    if not dtype.startswith(REAL_DTYPES):
        raise TypeError(f"{name} must hold real numbers; got dtype {dtype}. Convert it to floating point first.")
    return x


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


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def _read_stack(x: Any, member_axis: int, name: str) -> tuple[NDArray, tuple[int, ...], Origin]:
    """``x`` as (members, rows, classes) with the checks that need no look at the values."""
    array, origin = _as_array(x, name)
    if array.ndim < 2:
        raise ValueError(
            f"{name} must have shape (members, *batch, classes) with at least two axes; got shape {array.shape}. "
            f"For one distribution from one member write {name}[None, :]."
        )
    array = np.moveaxis(array, check_member_axis(member_axis, array.ndim, name), 0)
    members, classes = array.shape[0], array.shape[-1]
    if members == 0:
        raise_no_members(name, array.shape)
    check_classes(classes, name, array.shape)
    batch = array.shape[1:-1]
    rows = math.prod(batch)
    return np.ascontiguousarray(array).reshape(members, rows, classes), batch, origin


def raise_no_members(name: str, shape: tuple[int, ...]) -> NoReturn:
    """Refuse an empty member axis."""
    raise ValueError(f"{name} has no members (shape {shape}); at least one prediction per input is needed.")


def check_member_axis(axis: int, ndim: int, name: str) -> int:
    """The member axis as a non-negative integer: in range, and not the axis of the classes."""
    if ndim < 2:
        raise ValueError(f"{name} must have shape (members, *batch, classes) with at least two axes; got {ndim}.")
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
        raise TypeError(f"member_axis must be an integer; got {axis!r}.")
    if not -ndim <= axis < ndim:
        raise ValueError(f"member_axis={axis} is out of range for {name} with {ndim} axes; use {-ndim} to {ndim - 1}.")
    if axis % ndim == ndim - 1:
        raise ValueError(
            f"member_axis={axis} is the last axis of {name}, which holds the classes; members need an axis of their own."
        )
    return int(axis) % ndim


def check_classes(classes: int, name: str, shape: tuple[int, ...]) -> None:
    """At least two classes."""
    if classes < 2:
        raise ValueError(
            f"{name} needs at least two classes on its last axis; got {classes} (shape {shape}). "
            "For a binary classifier stack both columns, (1 - p, p)."
        )


def read_members(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> Members:
    """Shape and dtype of member predictions. Their values are checked in the pass that reads them."""
    array, batch, origin = _read_stack(probs, member_axis, name)
    return Members(array, batch, origin)


def read_distributions(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> Members:
    """Member predictions with their values checked, renormalised in float64."""
    members = read_members(probs, member_axis=member_axis, name=name)
    p = members.array.astype(np.float64)
    total = p.sum(axis=-1, keepdims=True)
    if not ((p >= 0).all() and (np.abs(total - 1) <= row_tolerance(members.origin.dtype)).all()):
        raise_bad_rows(members, name)
    return Members(p / total, members.batch, members.origin)


def read_logits(logits: Any, /, *, member_axis: int = 0, name: str = "logits") -> Members:
    """Member logits, softmaxed in float64: finite, or -inf for a class that is ruled out."""
    z, batch, origin = _read_stack(logits, member_axis, name)
    z = z.astype(np.float64)
    bad = np.isnan(z) | (z == np.inf)
    if bad.any():
        n, row, k = _index(int(bad.argmax()), z.shape)
        where = (n, *_index(row, batch or (1,))[: len(batch)], k)
        raise ValueError(
            f"{name} must be finite (or -inf); {int(bad.sum())} of {z.size} values are not, the first is {z[n, row, k]} "
            f"at index {where} (member, *batch, class). Look for overflow or a division by zero in the model."
        )
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        n, row, _ = _index(int(np.isneginf(top).argmax()), top.shape)
        raise ValueError(
            f"{name} rule out every class (all -inf) for member {n} at batch index "
            f"{_index(row, batch or (1,))[: len(batch)]}; a distribution needs at least one possible class."
        )
    z -= top
    np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return Members(z, batch, Origin(origin.library, origin.device, origin.result_dtype.name))


def raise_bad_rows(members: Members, name: str = "probs") -> NoReturn:
    """Word the error for member rows that the kernel refused."""
    p = members.array.astype(np.float64)
    tolerance = row_tolerance(members.origin.dtype)
    total = p.sum(axis=-1)
    bad = ~((p.min(axis=-1) >= 0) & (np.abs(total - 1) <= tolerance))
    n, row = _index(int(bad.argmax()), bad.shape)
    where = (n, *_index(row, members.batch or (1,))[: len(members.batch)])
    values = p[n, row]
    raise ValueError(
        f"{int(bad.sum())} of {bad.size} rows of {name} are not probability distributions; the first is at index {where} "
        f"(member, *batch): {_fault(values, float(total[n, row]), tolerance)} {NOT_PROBABILITIES}"
    )


def _fault(values: NDArray, total: float, tolerance: float) -> str:
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        return f"class {k} is {values[k]}; every value must be finite."
    if values.min() < 0:
        k = int(values.argmin())
        return f"class {k} is {values[k]:.6g}; probabilities are at least 0."
    return f"it sums to {total:.6g}; a row must sum to 1 within {tolerance:g} for its dtype."


def read_intervals(lower: Any, upper: Any, /, *, reachable: bool = True) -> Intervals:
    """Validate bounds: same shape, 0 <= lower <= upper <= 1, a non-empty credal set and (by default) reachable bounds.

    Sums that miss one by rounding are repaired, so that sum(lower) <= 1 <= sum(upper) holds afterwards.
    """
    low, origin = _as_array(lower, "lower")
    high, other = _as_array(upper, "upper")
    if low.shape != high.shape:
        raise ValueError(f"lower and upper must have the same shape; got {low.shape} and {high.shape}.")
    if low.ndim == 0:
        raise ValueError("lower and upper must have shape (*batch, classes); got two scalars.")
    check_classes(low.shape[-1], "lower", low.shape)
    tolerance = max(row_tolerance(origin.dtype), row_tolerance(other.dtype))
    batch, classes = low.shape[:-1], low.shape[-1]
    low = np.array(low, dtype=np.float64, order="C").reshape(math.prod(batch), classes)
    high = np.array(high, dtype=np.float64, order="C").reshape(math.prod(batch), classes)
    _check_bounds(low, high, batch, tolerance)
    _check_not_empty(low, high, batch, tolerance)
    _repair(low, high)
    if reachable:
        _check_reachable(low, high, batch, tolerance)
    return Intervals(low, high, batch, origin)


def _where(bad: NDArray, batch: tuple[int, ...]) -> tuple[int, ...]:
    return _index(int(bad.argmax()), batch or (1,))[: len(batch)]


def _check_bounds(low: NDArray, high: NDArray, batch: tuple[int, ...], tolerance: float) -> None:
    good = (low >= 0) & (high <= 1 + tolerance) & (low <= high)  # NaN compares false
    if good.all():
        return
    row, k = _index(int(good.argmin()), good.shape)
    where = (*_index(row, batch or (1,))[: len(batch)], k)
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
            f"{int(bad.sum())} of {bad.size} interval systems are empty; the first is at index {_where(bad, batch)}: "
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
    row, k = _index(int(bad.argmax()), bad.shape)
    side, value = ("lower", low[row, k]) if too_low[row, k] else ("upper", high[row, k])
    where = (*_index(row, batch or (1,))[: len(batch)], k)
    raise ValueError(
        f"{int(bad.any(axis=-1).sum())} of {len(bad)} interval systems have bounds that no distribution reaches; the first is "
        f"at index {where}: {side}={value:.6g} leaves no room for the other classes. "
        "Call ProbabilityIntervals(lower, upper).tighten() first."
    )


def check_threads(threads: int | None, /) -> int | None:
    """A positive number of threads, or None for all cores."""
    if threads is None:
        return None
    if not isinstance(threads, int) or isinstance(threads, bool):
        raise TypeError(f"threads must be a positive integer or None; got {threads!r}.")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, or None for all cores; got {threads}.")
    return threads


def check_max_nodes(max_nodes: int, /) -> None:
    """A positive work budget."""
    if not isinstance(max_nodes, int) or isinstance(max_nodes, bool):
        raise TypeError(f"max_nodes must be a positive integer; got {max_nodes!r}.")
    if max_nodes < 1:
        raise ValueError(f"max_nodes must be at least 1; got {max_nodes}.")


def check_tolerance(tolerance: float, /) -> None:
    """A finite tolerance of at least zero."""
    if not isinstance(tolerance, int | float) or isinstance(tolerance, bool):
        raise TypeError(f"tolerance must be a number of bits, at least 0; got {tolerance!r}.")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance must be finite and at least 0; got {tolerance!r}.")


def check_few_classes(classes: int, most: int, what: str) -> None:
    """Refuse work that is exponential in too many classes."""
    if classes > most:
        raise ValueError(
            f"{what} enumerates cases that grow exponentially and takes at most {most} classes; got {classes}. "
            "Merge classes first, for example with approximate_intervals."
        )


def check_reduced_classes(classes: int, /) -> int:
    """The number of classes that PIA keeps, the merged one included."""
    if not isinstance(classes, int | np.integer) or isinstance(classes, bool):
        raise TypeError(f"classes must be an integer of at least 2; got {classes!r}.")
    if classes < 2:
        raise ValueError(f"classes must be at least 2 (one kept, one merged); got {classes}.")
    return int(classes)


def check_choice(value: str, choices: Iterable[str], name: str) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in tuple(choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def check_subset(subset: Any, classes: int, /) -> list[int]:
    """Distinct class indices."""
    chosen = [int(k) for k in np.atleast_1d(np.asarray(subset, dtype=np.int64))] if np.size(subset) else []
    if len(set(chosen)) != len(chosen) or not all(0 <= k < classes for k in chosen):
        raise ValueError(f"subset must hold distinct class indices from 0 to {classes - 1}; got {subset!r}.")
    return chosen


def check_merge(one: Any, other: Any, /) -> None:
    """Two summaries of the same inputs: same library, batch and classes."""
    if type(one) is not type(other):
        raise TypeError(f"a MemberSummary merges with another MemberSummary; got {type(other).__name__}.")
    if one.origin is None or other.origin is None:
        return
    if one.origin.library != other.origin.library:
        raise TypeError(f"cannot merge summaries of {one.origin.library} and {other.origin.library} arrays.")
    if tuple(one.lower.shape) != tuple(other.lower.shape):
        raise ValueError(
            f"members must predict the same inputs and classes; got shapes {tuple(one.lower.shape)} and "
            f"{tuple(other.lower.shape)} (*batch, classes)."
        )


def check_not_empty_summary(count: int, /) -> None:
    """At least one member folded in."""
    if count == 0:
        raise ValueError("this MemberSummary has no members yet; call update(probs) before prediction().")


def raise_without_members() -> NoReturn:
    """The hull asked of a prediction that was made from a summary."""
    raise ValueError("the convex hull needs the members, and this prediction was made from a summary; use wrap(probs).")
