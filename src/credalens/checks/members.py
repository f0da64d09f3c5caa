"""Member predictions: their axes, the errors about rows that are none, and which may be merged into a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import index_in, row_tolerance
from credalens.checks.options import count_text, number_text

LOOK_FOR_OVERFLOW = "Look for overflow or a division by zero in the model."
NOT_PROBABILITIES = (
    'If these are logits, say so (wrap_logits, logits=True, outputs="logits", --logits); '
    "if they are counts or votes, divide by their sum."
)
ROUNDED = (
    "All rows miss 1 by at most {miss:.1g}, which half precision or rounded digits explain: keep them in float16 or bfloat16, "
    "or divide them by their sum, probs / probs.sum(-1, keepdims=True)."
)
OTHER_AXIS = (
    "They do sum to 1 along axis {axis}: if the classes are there, say class_axis={axis} (wrap, wrap_logits, CredalWrapper), "
    "or move that axis to the end."
)


class BadRowError(ValueError):
    """Some rows of member predictions are not distributions, or not logits of any.

    :ivar row: the first of them, counted over the whole batch.
    :ivar member: the first member whose prediction is bad there.
    :ivar fault: what is wrong with it and what to do, as a sentence that begins after a colon.
    """

    row: int
    member: int
    fault: str


def raise_bad_rows(
    probs: NDArray, batch: tuple[int, ...], name: str, /, *, dtype: str, tolerance: float, one_member: bool = False
) -> NoReturn:
    """Raise the error for rows of probabilities (members, rows, classes) that were refused.

    The indices of ``one_member`` are those of the batch alone.
    """
    with np.errstate(invalid="ignore"):  # a NaN that signals
        p = probs.astype(np.float64, order="C")
    total = p.sum(axis=-1)
    distance = np.abs(total - 1)
    bad = ~((p.min(axis=-1) >= 0) & (distance <= tolerance))
    if not bad.any():  # at the very edge another order of summation decides: it refused the sum that is farthest off
        bad = distance == distance.max()
    remedy = _remedy_for_sums(p.reshape(len(p), *batch, p.shape[-1]), distance, tolerance)

    def fault(n: int, row: int) -> str:
        values = p[n, row]
        if not np.isfinite(values).all():
            k = int(np.isfinite(values).argmin())
            return f"class {k} is {values[k]}; every value must be finite. {LOOK_FOR_OVERFLOW}"
        if values.min() < 0:
            k = int(values.argmin())
            return f"class {k} is {values[k]:.6g}; probabilities are at least 0. {NOT_PROBABILITIES}"
        return f"it sums to {total[n, row]:.6g}; a row must sum to 1 within {tolerance:g} for {dtype}. {remedy}"

    _raise(bad, batch, f"rows of {name} are not probability distributions", fault, one_member=one_member)


def raise_bad_logits(logits: NDArray, batch: tuple[int, ...], name: str, /, *, one_member: bool = False) -> NoReturn:
    """Raise the error for logits (members, rows, classes) that are NaN or +inf or rule out every class."""

    def fault(n: int, row: int) -> str:
        z = logits[n, row]
        if np.isneginf(z).all():
            return "the logits rule out every class (all -inf); at least one class must be possible."
        k = int((z < np.inf).argmin())
        rule = "every value must be finite, or -inf for a class that is ruled out"
        return f"class {k} is {z[k]}; {rule}. {LOOK_FOR_OVERFLOW}"

    bad = ~np.isfinite(logits.max(axis=-1))
    _raise(bad, batch, f"rows of {name} belong to no distribution", fault, one_member=one_member)


def _remedy_for_sums(p: NDArray, distance: NDArray, tolerance: float) -> str:
    """The remedy for sums of (members, *batch, classes) that are this far from one."""
    if not p.min() >= 0:
        return NOT_PROBABILITIES
    if distance.max() <= row_tolerance("float16"):
        return ROUNDED.format(miss=distance.max())
    for axis in range(1 - p.ndim, -1):
        if p.shape[axis] > 1 and np.abs(p.sum(axis=axis) - 1).max() <= tolerance:
            return OTHER_AXIS.format(axis=axis)
    return NOT_PROBABILITIES


def _raise(
    bad: NDArray, batch: tuple[int, ...], what: str, fault: Callable[[int, int], str], *, one_member: bool
) -> NoReturn:
    n, row = index_in(int(bad.argmax()), bad.shape)
    where, axes = (index_in(row, batch), "*batch") if one_member else ((n, *index_in(row, batch)), "member, *batch")
    error = BadRowError(
        f"{int(bad.sum())} of {bad.size} {what}; the first is at index {where} ({axes}): {fault(n, row)}"
    )
    error.row = int(bad.any(axis=0).argmax())
    error.member = int(bad[:, error.row].argmax())
    error.fault = fault(error.member, error.row)
    raise error


@contextmanager
def naming_bad_row(
    source: Any, start: int, /, *, row_name: Callable[[int, int], str] = "row {}, member {}".format
) -> Iterator[None]:
    """Reword an error about a chunk that begins at row ``start`` of ``source``: name the first bad row of the source.

    ``row_name(row, member)`` says how the source calls it.
    """
    try:
        yield
    except BadRowError as error:
        name = row_name(start + error.row, error.member)
        raise ValueError(f"{source}: {name}: {error.fault}") from error
    except ValueError as error:
        raise ValueError(f"{source}: rows from {start} on: {error}") from error


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


def check_member_axis(axis: int, ndim: int, name: str) -> int:
    """The member axis as a non-negative integer: in range, and not the axis of the classes."""
    if ndim < 2:
        raise ValueError(f"{name} must have shape (members, *batch, classes) with at least two axes; got {ndim}.")
    if (place := check_axis(axis, "member_axis", ndim, name)) == ndim - 1:
        raise ValueError(
            f"member_axis={axis} is the last axis of {name}, which holds the classes; members need an axis of their own."
        )
    return place


def raise_no_members(name: str, shape: tuple[int, ...]) -> NoReturn:
    """Refuse an empty member axis."""
    raise ValueError(f"{name} has no members (shape {shape}); at least one prediction per input is needed.")


def batch_index(key: Any, axes: int, /) -> Any:
    """An index of a batch with so many axes that reaches neither members nor classes."""
    if not isinstance(key, tuple):
        return key
    chosen = 0
    for entry in key:
        if isinstance(entry, list | tuple):
            entry = np.asarray(entry)
        if entry is not None and entry is not Ellipsis:
            is_mask = str(getattr(entry, "dtype", "")).endswith("bool")
            chosen += len(entry.shape) if is_mask else 1  # a mask is for as many axes as it has
    if chosen > axes:
        raise IndexError(
            f"the batch has {count_text(axes, 'axis', 'axes')} and the index is for {chosen}; it chooses inputs, and the "
            "classes are an axis of the arrays: prediction[...].probability[..., 0]."
        )
    rest = (slice(None),) * (axes - chosen)
    return tuple(part for entry in key for part in (rest if entry is Ellipsis else (entry,)))


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
    if bool(summary.temperatures) != bool(other.temperatures):
        raise ValueError(
            "members of one summary were recalibrated and those of the other were not; begin both with "
            "MemberSummary(recalibration=r)."
        )
    libraries = summary.array_kind.library, other.array_kind.library
    if libraries[0] != libraries[1]:
        raise TypeError(f"cannot merge summaries of {libraries[0]} and {libraries[1]} arrays.")
    shapes = tuple(summary.lower.shape), tuple(other.lower.shape)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"members must predict the same inputs and classes; got shapes {shapes[0]} and {shapes[1]} (*batch, classes)."
        )
