"""Member predictions: their shape, their rows, their logits, and summaries of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import Origin, namespace, origin_of, single
from credalens.checks.arrays import as_array, check_classes, index_in, read_array, restored, row_tolerance

__all__ = [
    "Members",
    "check_member_axis",
    "check_merge",
    "check_not_empty_summary",
    "distributions",
    "in_one_precision",
    "raise_bad_members",
    "raise_bad_rows",
    "raise_no_members",
    "raise_without_members",
    "read_distributions",
    "read_logits",
    "read_members",
]

HALF = ("float16", "bfloat16")
EDGE = 1e-6  # of the tolerance: more than the order of summation can move a row's sum
NOT_PROBABILITIES = "If these are logits, call wrap_logits; if they are counts or votes, divide by their sum first."


@dataclass(frozen=True)
class Members:
    """Member predictions as (members, rows, classes), in whatever order they lie, and where they came from."""

    array: NDArray
    batch: tuple[int, ...]
    origin: Origin
    accepted: bool = False

    @property
    def tolerance(self) -> float:
        """How far from one a row's sum may be; a little more where rows were accepted that are now summed in another order."""
        return row_tolerance(self.origin.dtype) * (1 + EDGE if self.accepted else 1)

    def read_again(self) -> Members:
        """The same members, whose rows have been accepted before."""
        return Members(self.array, self.batch, self.origin, accepted=True)

    def read(self) -> Members:
        """Themselves; members on a GPU have to be fetched."""
        return self

    def rows(self, start: int, stop: int) -> tuple[NDArray, int, int]:
        """An array that kernels can read and where these rows are in it.

        The members themselves if they can be; if they lie in another order or are narrow floats, a copy of these rows only.
        """
        if self.array.dtype in (np.float32, np.float64) and self.array.flags.c_contiguous:
            return self.array, start, stop
        part = self.array[:, start:stop].astype(self.origin.result_dtype, order="C")
        return part, 0, stop - start

    def restore(self, array: NDArray, /) -> Any:
        """Give ``array`` (rows, ...) the caller's batch shape, precision and library."""
        return restored(array, self.batch, self.origin)


def in_one_precision(probs: Any, /, *, name: str = "probs") -> Any:
    """Members in a list, those in half precision among others in float32: rows that their own dtype allows, renormalised.

    An array of all of them has the dtype of the widest, for which rows of the narrower need not sum to one.
    """
    if not isinstance(probs, list | tuple):
        return probs
    dtypes = [str(getattr(member, "dtype", "")).rpartition(".")[2] for member in probs]
    if len(set(dtypes)) == 1 or not any(dtype in HALF for dtype in dtypes):
        return probs
    pairs = zip(probs, dtypes, strict=True)
    return [_renormalised(member, dtype, name) if dtype in HALF else member for member, dtype in pairs]


def _renormalised(member: Any, dtype: str, name: str) -> Any:
    """One member in float32; a row that is no distribution stays as it is, to be refused with its index."""
    p = single(read_array(member, name))
    xp = namespace(origin_of(p).library)
    if not p.shape:
        return p
    total = xp.sum(p, axis=-1, keepdims=True)
    return p / xp.where(abs(total - 1) <= row_tolerance(dtype), total, xp.ones_like(total))


def read_members(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> Members:
    """Shape and dtype of member predictions. Their values are checked in the pass that reads them."""
    array, batch, origin = _read_stack(in_one_precision(probs, name=name), member_axis, name)
    return Members(array, batch, origin)


def read_distributions(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> Members:
    """Member predictions with their values checked, renormalised in float64."""
    return distributions(read_members(probs, member_axis=member_axis, name=name), name)


def distributions(members: Members, name: str = "probs", /) -> Members:
    """The same members with their values checked, renormalised in float64."""
    p = members.array.astype(np.float64, order="C")
    total = p.sum(axis=-1, keepdims=True)
    if not ((p >= 0).all() and (np.abs(total - 1) <= members.tolerance).all()):
        raise_bad_rows(members, name)
    return Members(p / total, members.batch, members.origin)


def read_logits(logits: Any, /, *, member_axis: int = 0, name: str = "logits") -> Members:
    """Member logits, softmaxed in float64: finite, or -inf for a class that is ruled out."""
    z, batch, origin = _read_stack(logits, member_axis, name)
    z = z.astype(np.float64, order="C")
    bad = np.isnan(z) | (z == np.inf)
    if bad.any():
        n, row, k = index_in(int(bad.argmax()), z.shape)
        where = (n, *index_in(row, batch), k)
        raise ValueError(
            f"{name} must be finite (or -inf); {int(bad.sum())} of {z.size} values are not, the first is {z[n, row, k]} "
            f"at index {where} (member, *batch, class). Look for overflow or a division by zero in the model."
        )
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        n, row, _ = index_in(int(np.isneginf(top).argmax()), top.shape)
        raise ValueError(
            f"{name} rule out every class (all -inf) for member {n} at batch index "
            f"{index_in(row, batch)}; a distribution needs at least one possible class."
        )
    with np.errstate(over="ignore", under="ignore"):  # a difference that float64 cannot hold is a probability of zero
        z -= top
        np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return Members(z, batch, Origin(origin.library, origin.device, origin.result_dtype.name))


def _read_stack(x: Any, member_axis: int, name: str) -> tuple[NDArray, tuple[int, ...], Origin]:
    """``x`` as (members, rows, classes), a view where its strides allow one; checks that need no look at the values."""
    array, origin = as_array(x, name)
    if array.ndim < 2:
        raise ValueError(
            f"{name} must have shape (members, *batch, classes) with at least two axes; got shape {array.shape}. "
            f"For one distribution from one member write {name}[None, :]."
        )
    if (axis := check_member_axis(member_axis, array.ndim, name)) != 0:
        array = np.moveaxis(array, axis, 0)
    members, classes = array.shape[0], array.shape[-1]
    if members == 0:
        raise_no_members(name, array.shape)
    check_classes(classes, name, array.shape)
    batch = array.shape[1:-1]
    return array.reshape(members, math.prod(batch), classes), batch, origin


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


def raise_no_members(name: str, shape: tuple[int, ...]) -> NoReturn:
    """Refuse an empty member axis."""
    raise ValueError(f"{name} has no members (shape {shape}); at least one prediction per input is needed.")


def raise_bad_rows(members: Members, name: str = "probs", *, one_member: bool = False) -> NoReturn:
    """Word the error for member rows that were refused; those of ``one_member`` have an index of the batch alone."""
    p = members.array.astype(np.float64, order="C")
    total = p.sum(axis=-1)
    bad = ~((p.min(axis=-1) >= 0) & (np.abs(total - 1) <= members.tolerance))
    if not bad.any():  # at the very edge another order of summation decides: it refused the sum that is farthest off
        bad = np.abs(total - 1) == np.abs(total - 1).max()
    n, row = index_in(int(bad.argmax()), bad.shape)
    at = index_in(row, members.batch)
    where, axes = (at, "*batch") if one_member else ((n, *at), "member, *batch")
    raise ValueError(
        f"{int(bad.sum())} of {bad.size} rows of {name} are not probability distributions; the first is at index {where} "
        f"({axes}): {_fault(p[n, row], float(total[n, row]), members.tolerance)} {NOT_PROBABILITIES}"
    )


def raise_bad_members(probs: Any, member_axis: int | None, name: str = "probs") -> NoReturn:
    """Word the error for members that a summary refused: several along ``member_axis``, or None for one alone."""
    if member_axis is not None:
        raise_bad_rows(read_members(probs, member_axis=member_axis, name=name), name)
    array, origin = as_array(probs, name)
    batch, classes = array.shape[:-1], array.shape[-1]
    raise_bad_rows(Members(array.reshape(1, math.prod(batch), classes), batch, origin), name, one_member=True)


def _fault(values: NDArray, total: float, tolerance: float) -> str:
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        return f"class {k} is {values[k]}; every value must be finite."
    if values.min() < 0:
        k = int(values.argmin())
        return f"class {k} is {values[k]:.6g}; probabilities are at least 0."
    return f"it sums to {total:.6g}; a row must sum to 1 within {tolerance:g} for its dtype."


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
