"""Errors about rows that are not predictions: which row is the first, what is wrong with it, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import index_in, row_tolerance

if TYPE_CHECKING:
    from credalens.checks.members import MemberArray

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


def raise_bad_rows(members: MemberArray, name: str = "probs", *, one_member: bool = False) -> NoReturn:
    """Raise the error for member rows that were refused; those of ``one_member`` have an index of the batch alone."""
    with np.errstate(invalid="ignore"):  # a NaN that signals
        p = members.array.astype(np.float64, order="C")
    total = p.sum(axis=-1)
    distance = np.abs(total - 1)
    bad = ~((p.min(axis=-1) >= 0) & (distance <= members.tolerance))
    if not bad.any():  # at the very edge another order of summation decides: it refused the sum that is farthest off
        bad = distance == distance.max()
    remedy = _remedy(p.reshape(len(p), *members.batch, p.shape[-1]), distance, members.tolerance)

    def fault(n: int, row: int) -> str:
        limit = f"{members.tolerance:g} for {members.array_kind.dtype}"
        sum_is_off = f"it sums to {total[n, row]:.6g}; a row must sum to 1 within {limit}. {remedy}"
        return _fault_of_probabilities(p[n, row], sum_is_off)

    _raise(bad, members.batch, f"rows of {name} are not probability distributions", fault, one_member=one_member)


def raise_bad_logits(members: MemberArray, name: str = "logits", *, one_member: bool = False) -> NoReturn:
    """Raise the error for logits that were refused, since some are NaN or +inf or rule out every class."""
    z = members.array
    bad = ~np.isfinite(z.max(axis=-1))
    what = f"rows of {name} belong to no distribution"
    _raise(bad, members.batch, what, lambda n, row: _fault_of_logits(z[n, row]), one_member=one_member)


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


def _fault_of_probabilities(p: NDArray, sum_is_off: str) -> str:
    if not np.isfinite(p).all():
        k = int(np.isfinite(p).argmin())
        return f"class {k} is {p[k]}; every value must be finite. {LOOK_FOR_OVERFLOW}"
    if p.min() < 0:
        k = int(p.argmin())
        return f"class {k} is {p[k]:.6g}; probabilities are at least 0. {NOT_PROBABILITIES}"
    return sum_is_off


def _remedy(p: NDArray, distance: NDArray, tolerance: float) -> str:
    """What to do about sums of (members, *batch, classes) that are this far from one."""
    if not p.min() >= 0:
        return NOT_PROBABILITIES
    if distance.max() <= row_tolerance("float16"):
        return ROUNDED.format(miss=distance.max())
    for axis in range(1 - p.ndim, -1):
        if p.shape[axis] > 1 and np.abs(p.sum(axis=axis) - 1).max() <= tolerance:
            return OTHER_AXIS.format(axis=axis)
    return NOT_PROBABILITIES


def _fault_of_logits(z: NDArray) -> str:
    if np.isneginf(z).all():
        return "the logits rule out every class (all -inf); at least one class must be possible."
    k = int((z < np.inf).argmin())
    return (
        f"class {k} is {z[k]}; every value must be finite, or -inf for a class that is ruled out. {LOOK_FOR_OVERFLOW}"
    )


def _row_and_member(row: int, member: int) -> str:
    return f"row {row}, member {member}"


@contextmanager
def naming_bad_row(
    source: Any, start: int, /, *, row_name: Callable[[int, int], str] = _row_and_member
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
