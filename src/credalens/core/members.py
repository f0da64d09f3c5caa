"""Member predictions: how they are read, and what is asked of them wherever they lie."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import (
    ArrayKind,
    array_kind_of,
    astype,
    in_own_library,
    namespace,
    rounding,
    rounding_of_all,
    take_inputs,
)
from credalens.checks.arrays import as_array, check_classes, check_samples_and_classes, read_array, row_tolerance
from credalens.checks.members import check_axis, check_member_axis, raise_bad_logits, raise_bad_rows, raise_no_members
from credalens.core.batches import for_each_chunk

HALF = ("float16", "bfloat16")
EDGE = 1e-6  # of the tolerance: more than the order of summation can move a row's sum


class Members(Protocol):
    """The members of a prediction: all that is asked of them later, in NumPy (`MemberArray`), in torch or on a GPU.

    Rows are the inputs of the batch, one after the other; results come as arrays of the library in which they are computed.
    """

    def take(self, key: Any, /) -> Members:
        """The members of some inputs, chosen by an index of the batch."""

    def to_cpu(self) -> MemberArray:
        """The members as every solver reads them."""

    def entropies(self, *, threads: int | None = None) -> tuple[Any, Any]:
        """The entropy of the mean and the mean entropy of the members in bits, (rows,) each."""

    def by_rows(self, compute: Callable[[Any], Any], /, *, threads: int | None = None) -> Any:
        """``compute``, from probabilities (members, some rows, classes) in float64 to a number for each row, of all rows."""

    def restore(self, array: Any, /) -> Any:
        """``array`` (rows, ...) in the caller's batch shape, precision and library."""


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
        array = self.array
        if array.dtype not in (np.float32, np.float64) or not array.flags.c_contiguous:
            return array[:, start:stop].astype(self.array_kind.result_dtype, order="C"), 0, stop - start
        if not array.flags.writeable:
            # The same memory, which kernels do not write, as an array that may be written: for read-only arrays Numba would
            # compile kernels of their own, whose last digits may differ.
            interface = {**array.__array_interface__, "data": (array.ctypes.data, False)}
            array = np.asarray(SimpleNamespace(__array_interface__=interface, memory=array))
        return array, start, stop

    def are_distributions(self) -> bool:
        """Whether no value is negative and every row sums to one within the tolerance."""
        with np.errstate(invalid="ignore"):  # a NaN that signals
            total = self.array.sum(axis=-1, dtype=np.float64)
        return bool((self.array >= 0).all() and (np.abs(total - 1) <= self.tolerance).all())

    def refuse(self, name: str = "probs", /, *, one_member: bool = False) -> NoReturn:
        """Raise the error about the first row that is no distribution."""
        dtype = self.array_kind.dtype
        raise_bad_rows(self.array, self.batch, name, dtype=dtype, tolerance=self.tolerance, one_member=one_member)

    def checked(self, name: str = "probs", /, *, one_member: bool = False) -> MemberArray:
        """The same members; refused if a row is no distribution."""
        if not self.are_distributions():
            self.refuse(name, one_member=one_member)
        return self

    def normalised(self) -> MemberArray:
        """The same members in float64, every row divided by its sum."""
        p = self.array.astype(np.float64, order="C")
        return replace(self, array=p / p.sum(axis=-1, keepdims=True))

    def entropies(self, *, threads: int | None = None) -> tuple[NDArray, NDArray]:
        """The entropy of the mean and the mean entropy of the members in bits, (rows,) each; checks their values."""
        from credalens.kernels.members import classical_rows

        members, rows, classes = self.array.shape
        total, aleatoric = np.empty((2, rows))

        def work(start: int, stop: int) -> None:
            results = total[start:stop], aleatoric[start:stop]
            if not classical_rows(*self.rows(start, stop), self.tolerance, *results, np.empty(members)):
                self.refuse()

        for_each_chunk(work, rows, classes, threads=threads)
        return total, aleatoric

    def by_rows(self, compute: Callable[[NDArray], NDArray], /, *, threads: int | None = None) -> NDArray:
        """``compute`` for the probabilities of all rows, by chunks of them, (rows,)."""
        members, rows, classes = self.array.shape
        values = np.empty(rows)

        def work(start: int, stop: int) -> None:
            p = self.array[:, start:stop].astype(np.float64)
            values[start:stop] = compute(p / p.sum(axis=-1, keepdims=True))

        for_each_chunk(work, rows, classes * members, threads=threads)
        return values

    def restore(self, array: NDArray, /) -> Any:
        """``array`` (rows, ...) in the caller's batch shape, precision and library."""
        return self.array_kind.restore_rows(array, self.batch)


def read_members(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> MemberArray:
    """Member predictions of a valid shape and dtype. Their values are checked in the pass that reads them."""
    return read_stack(in_common_precision(probs, name=name), member_axis, name)


def read_distributions(probs: Any, /, *, member_axis: int = 0, name: str = "probs") -> MemberArray:
    """Member predictions with their values checked, renormalised in float64."""
    return read_members(probs, member_axis=member_axis, name=name).checked(name).normalised()


def read_logits(logits: Any, /, *, member_axis: int = 0, name: str = "logits") -> MemberArray:
    """The softmax in float64 of member logits, which must be finite, or -inf for a class that is ruled out."""
    return softmax_of(read_stack(logits, member_axis, name), name)


def softmax_of(members: MemberArray, name: str, temperatures: NDArray | None = None, /) -> MemberArray:
    """The softmax in float64 of logits that were read as they are, divided by ``temperatures`` if there are any."""
    z = check_logits(members, name)
    with np.errstate(over="ignore", under="ignore"):  # a difference that float64 cannot hold is a probability of zero
        z -= z.max(axis=-1, keepdims=True)
        if temperatures is not None:
            z /= temperatures
        np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return replace(members, array=z, array_kind=members.array_kind.of_softmax())


def check_logits(members: MemberArray, name: str, /) -> NDArray[np.float64]:
    """A copy in float64 of logits, none of which is NaN or +inf, nor is every class ruled out."""
    with np.errstate(invalid="ignore"):  # a NaN that signals
        z = members.array.astype(np.float64, order="C")
    if not np.isfinite(z.max(axis=-1)).all():
        raise_bad_logits(members.array, members.batch, name)
    return z


def read_stack(x: Any, member_axis: int, name: str, /) -> MemberArray:
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


def read_probabilities(x: Any, name: str, /) -> NDArray[np.float64]:
    """Distributions (*samples, classes) exactly as given: refused where they are none, never rescaled."""
    array = as_array(x, name)[0]
    check_samples_and_classes(array, name)
    one_member(x, name).checked(name, one_member=True)
    return array.astype(np.float64)


def one_member(values: Any, name: str, /) -> MemberArray:
    """The prediction (*batch, classes) of one member."""
    array, array_kind = as_array(values, name)
    batch, classes = array.shape[:-1], array.shape[-1]
    return MemberArray(array.reshape(1, math.prod(batch), classes), batch, array_kind)


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


def _renormalised(member: Any, dtype: str, axis: int, name: str) -> Any:
    """One member in float32; a row that is not a distribution stays as it is, to be refused with its index."""
    p = astype(read_array(member, name), "float32")
    xp = namespace(array_kind_of(p).library)
    if not -len(p.shape) <= axis < len(p.shape):
        return p
    total = xp.sum(p, axis=axis, keepdims=True)
    return p / xp.where(abs(total - 1) <= row_tolerance(dtype), total, xp.ones_like(total))


def roughest(members: Any, /, *, logits: bool = False) -> float:
    """The rounding of a list of members, 0 for anything else: stacked, they have the widest dtype."""
    if not isinstance(members, list | tuple) or not members:
        return 0.0
    return rounding_of_all(*[rounding(_dtype_name(member), logits=logits) for member in members])


def _dtype_name(x: Any) -> str:
    return str(getattr(x, "dtype", "")).rpartition(".")[2]
