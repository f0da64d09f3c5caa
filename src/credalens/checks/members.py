"""Member predictions and summaries of them: their shape, their rows, their logits, and which may be merged."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import (
    ArrayKind,
    array_kind_of,
    in_own_library,
    namespace,
    rounding,
    rounding_of_all,
    take_inputs,
    to_float32,
)
from credalens.checks.arrays import as_array, check_classes, read_array, row_tolerance
from credalens.checks.bad_rows import raise_bad_logits, raise_bad_rows
from credalens.checks.options import count_text, number_text

HALF = ("float16", "bfloat16")
EDGE = 1e-6  # of the tolerance: more than the order of summation can move a row's sum


@dataclass(frozen=True)
class MemberArray:
    """Member predictions as (members, rows, classes), in any memory order, their batch shape and the caller's kind of array.

    :ivar accepted: whether the rows have passed the check of their sums before.
    """

    array: NDArray
    batch: tuple[int, ...]
    array_kind: ArrayKind
    accepted: bool = False

    @property
    def tolerance(self) -> float:
        """How far from one a row's sum may be: a little more for accepted rows, which may be summed in another order now."""
        return row_tolerance(self.array_kind.dtype) * (1 + EDGE if self.accepted else 1)

    def as_accepted(self) -> MemberArray:
        """The same members, whose rows have been accepted before."""
        return replace(self, accepted=True)

    def rounded_by(self, least: float, /) -> MemberArray:
        """The same members, which were rounded by at least so much before."""
        return replace(self, array_kind=self.array_kind.rounded_by(least))

    def to_cpu(self) -> MemberArray:
        """The members themselves; those on a GPU have to be fetched."""
        return self

    def take(self, key: Any, /) -> MemberArray:
        """The members of some inputs, chosen by an index of the batch."""
        shaped = take_inputs(self.array.reshape(len(self.array), *self.batch, self.array.shape[-1]), key)
        members, *batch, classes = shaped.shape
        return replace(self, array=shaped.reshape(members, math.prod(batch), classes), batch=tuple(batch))

    def rows(self, start: int, stop: int) -> tuple[NDArray, int, int]:
        """An array that kernels can read and where these rows are in it.

        That is the array itself if kernels can read it, else a copy of these rows.
        """
        if self.array.dtype in (np.float32, np.float64) and self.array.flags.c_contiguous:
            return _not_read_only(self.array), start, stop
        part = self.array[:, start:stop].astype(self.array_kind.result_dtype, order="C")
        return part, 0, stop - start

    def are_distributions(self) -> bool:
        """Whether no value is negative and every row sums to one within the tolerance."""
        with np.errstate(invalid="ignore"):  # a NaN that signals
            total = self.array.sum(axis=-1, dtype=np.float64)
        return bool((self.array >= 0).all() and (np.abs(total - 1) <= self.tolerance).all())

    def normalised(self) -> MemberArray:
        """The same members in float64, every row divided by its sum."""
        p = self.array.astype(np.float64, order="C")
        return replace(self, array=p / p.sum(axis=-1, keepdims=True))

    def restore(self, array: NDArray, /) -> Any:
        """``array`` (rows, ...) in the caller's batch shape, precision and library."""
        return self.array_kind.restore_rows(array, self.batch)


def _not_read_only(array: NDArray) -> NDArray:
    """The same memory, which kernels do not write, as an array that may be written.

    For read-only arrays Numba would compile kernels of their own, whose last digits may differ.
    """
    if array.flags.writeable:
        return array
    interface = {**array.__array_interface__, "data": (array.ctypes.data, False)}
    return np.asarray(SimpleNamespace(__array_interface__=interface, memory=array))


def read_members(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> MemberArray:
    """Member predictions of a valid shape and dtype. Their values are checked in the pass that reads them."""
    return _read_stack(in_common_precision(probs, name=name), member_axis, name)


def read_distributions(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> MemberArray:
    """Member predictions with their values checked, renormalised in float64."""
    return read_valid_members(probs, member_axis=member_axis, name=name).normalised()


def read_valid_members(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> MemberArray:
    """Member predictions with their values checked."""
    members = read_members(probs, member_axis=member_axis, name=name)
    if not members.are_distributions():
        raise_bad_rows(members, name)
    return members


def read_logits(logits: Any, /, *, member_axis: int = 0, name: str = "logits") -> MemberArray:
    """The softmax in float64 of member logits, which must be finite, or -inf for a class that is ruled out."""
    members = _read_stack(logits, member_axis, name)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        z = members.array.astype(np.float64, order="C")
    top = z.max(axis=-1, keepdims=True)
    if not np.isfinite(top).all():  # NaN, +inf, or -inf in every class
        raise_bad_logits(members, name)
    with np.errstate(over="ignore", under="ignore"):  # a difference that float64 cannot hold is a probability of zero
        z -= top
        np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return replace(members, array=z, array_kind=members.array_kind.of_softmax())


def _read_stack(x: Any, member_axis: int, name: str) -> MemberArray:
    """``x`` as (members, rows, classes), a view where its strides allow one. Its values are not looked at."""
    array, array_kind = as_array(x, name)
    if array.ndim < 2:
        raise ValueError(
            f"{name} must have shape (members, *batch, classes) with at least two axes; got shape {array.shape}. "
            f"For one distribution from one member write {name}[None, :]."
        )
    if (axis := check_member_axis(member_axis, array.ndim, name)) != 0:
        array = np.moveaxis(array, axis, 0)
    members, *batch, classes = array.shape
    if members == 0:
        raise_no_members(name, array.shape)
    check_classes(classes, name, array.shape)
    return MemberArray(array.reshape(members, math.prod(batch), classes), tuple(batch), array_kind)


def classes_last(x: Any, member_axis: int, class_axis: int, name: str, /) -> tuple[Any, int]:
    """``x`` with its classes on the last axis, and where its members are then. The axes are those of ``x`` as it came."""
    if class_axis == -1:
        return x, member_axis
    x = in_own_library(x)
    classes, members = (
        check_axis(axis, option, len(x.shape), name)
        for axis, option in ((class_axis, "class_axis"), (member_axis, "member_axis"))
    )
    if members == classes:
        raise ValueError(f"member_axis={member_axis} and class_axis={class_axis} are the same axis of {name}.")
    return namespace(array_kind_of(x).library).moveaxis(x, classes, -1), members - (members > classes)


def one_member(values: Any, name: str, /) -> MemberArray:
    """The prediction (*batch, classes) of one member."""
    array, array_kind = as_array(values, name)
    batch, classes = array.shape[:-1], array.shape[-1]
    return MemberArray(array.reshape(1, math.prod(batch), classes), batch, array_kind)


def in_common_precision(probs: Any, /, *, class_axis: int = -1, name: str = "probs") -> Any:
    """A list of members of several dtypes, with those in half precision converted to float32 and renormalised.

    Stacked, all get the widest dtype, within whose tolerance the rows of a narrower one need not sum to one. Then
    ``class_axis`` is the axis of their classes.
    """
    if not isinstance(probs, list | tuple) or len({getattr(member, "dtype", None) for member in probs}) == 1:
        return probs
    dtypes = [_dtype_name(member) for member in probs]
    if not any(dtype in HALF for dtype in dtypes):
        return probs
    pairs = zip(probs, dtypes, strict=True)
    axis = class_axis - (class_axis > 0)  # of a single member
    return [_renormalised(member, dtype, axis, name) if dtype in HALF else member for member, dtype in pairs]


def roughest(members: Any, /, *, logits: bool = False) -> float:
    """The rounding of a list of members, 0 for anything else: stacked, they have the widest dtype."""
    if not isinstance(members, list | tuple) or not members:
        return 0.0
    return rounding_of_all(*[rounding(_dtype_name(member), logits=logits) for member in members])


def _dtype_name(x: Any) -> str:
    return str(getattr(x, "dtype", "")).rpartition(".")[2]


def _renormalised(member: Any, dtype: str, axis: int, name: str) -> Any:
    """One member in float32; a row that is not a distribution stays as it is, to be refused with its index."""
    p = to_float32(read_array(member, name))
    xp = namespace(array_kind_of(p).library)
    if not -len(p.shape) <= axis < len(p.shape):
        return p
    total = xp.sum(p, axis=axis, keepdims=True)
    return p / xp.where(abs(total - 1) <= row_tolerance(dtype), total, xp.ones_like(total))


def check_member_axis(axis: int, ndim: int, name: str) -> int:
    """The member axis as a non-negative integer: in range, and not the axis of the classes."""
    if ndim < 2:
        raise ValueError(f"{name} must have shape (members, *batch, classes) with at least two axes; got {ndim}.")
    if (place := check_axis(axis, "member_axis", ndim, name)) == ndim - 1:
        raise ValueError(
            f"member_axis={axis} is the last axis of {name}, which holds the classes; members need an axis of their own."
        )
    return place


def batch_index(key: Any, axes: int, /) -> Any:
    """An index of a batch with so many axes that reaches neither members nor classes."""
    if not isinstance(key, tuple):
        return key
    chosen = sum(_axes_chosen(entry) for entry in key)
    if chosen > axes:
        raise IndexError(
            f"the batch has {count_text(axes, 'axis', 'axes')} and the index is for {chosen}; it chooses inputs, and the "
            "classes are an axis of the arrays: prediction[...].probability[..., 0]."
        )
    rest = (slice(None),) * (axes - chosen)
    return tuple(part for entry in key for part in (rest if entry is Ellipsis else (entry,)))


def _axes_chosen(entry: Any) -> int:
    """How many axes one entry of an index is for: a mask for as many as it has."""
    if entry is None or entry is Ellipsis:
        return 0
    entry = np.asarray(entry) if isinstance(entry, list | tuple) else entry
    return len(entry.shape) if str(getattr(entry, "dtype", "")).endswith("bool") else 1


def check_axis(axis: Any, option: str, ndim: int, name: str) -> int:
    """An axis of an array with so many axes as a non-negative integer."""
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
        raise TypeError(f"{option} must be an integer; got {axis!r}.")
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"{option}={number_text(axis)} is out of range for {name} with {count_text(ndim, 'axis', 'axes')}; use {-ndim} to "
            f"{ndim - 1}."
        )
    return int(axis) % ndim


def raise_no_members(name: str, shape: tuple[int, ...]) -> NoReturn:
    """Refuse an empty member axis."""
    raise ValueError(f"{name} has no members (shape {shape}); at least one prediction per input is needed.")


def raise_bad_member(values: Any, name: str, *, kind: str = "probabilities") -> NoReturn:
    """Raise the error for the refused "probabilities" or "logits" (*batch, classes) of one member."""
    raise_bad = raise_bad_logits if kind == "logits" else raise_bad_rows
    raise_bad(one_member(values, name), name, one_member=True)


def check_continues(summary: Any, shape: tuple[int, ...], member_axis: int | None, /) -> None:
    """Refuse an array with an axis too few or too many for the members so far, and say how to pass it."""
    if summary.array_kind is None:
        return
    member = tuple(summary.lower.shape)
    if len(shape) == len(member) + (member_axis is not None):
        return
    asked = "one member" if member_axis is None else f"members along member_axis={member_axis}"
    remedy = {
        len(member): "for one more member pass member_axis=None",
        len(member) + 1: "for several members pass member_axis=0",
    }.get(len(shape), "all members must predict the same inputs and classes")
    raise ValueError(
        f"probs of shape {shape} cannot be {asked} here: each of the {summary.count} so far has shape {member} "
        f"(*batch, classes); {remedy}."
    )


def check_merge(summary: Any, other: Any, /) -> None:
    """Two summaries of the same inputs: same library, batch and classes."""
    if type(summary) is not type(other):
        raise TypeError(f"a MemberSummary merges with another MemberSummary; got {type(other).__name__}.")
    if summary.keep != other.keep and (summary.count or summary.keep) and (other.count or other.keep):
        raise ValueError(
            f"summaries merge only if both keep the same number of values; got keep={summary.keep} and keep={other.keep}."
        )
    if summary.array_kind is None or other.array_kind is None:
        return
    libraries = summary.array_kind.library, other.array_kind.library
    if libraries[0] != libraries[1]:
        raise TypeError(f"cannot merge summaries of {libraries[0]} and {libraries[1]} arrays.")
    shapes = tuple(summary.lower.shape), tuple(other.lower.shape)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"members must predict the same inputs and classes; got shapes {shapes[0]} and {shapes[1]} (*batch, classes)."
        )


def check_kept(keep: int, out: int, count: int, /) -> None:
    """Refuse a summary that keeps too few extreme values to leave out ``out`` members at each end."""
    if out > keep:
        raise ValueError(
            f"to leave out {out} of {count} members at each end a summary must keep that many values of every class; this one "
            f"has keep={keep}. Begin with MemberSummary(keep={out})."
        )


def check_not_empty(count: int, /) -> None:
    """At least one member folded in."""
    if count == 0:
        raise ValueError("this MemberSummary has no members yet; call update(probs) before prediction().")


def raise_bad_members(probs: Any, member_axis: int | None, name: str = "probs") -> NoReturn:
    """Raise the error for members that a summary refused: several along ``member_axis``, or None for one alone."""
    if member_axis is None:
        raise_bad_member(probs, name)
    raise_bad_rows(read_members(probs, member_axis=member_axis, name=name), name)
