"""Warnings about members: what can hardly be meant, and what makes a credal set say little.

Rows of one model as members, probabilities as logits, classes on another axis; a single member, equal members, members
that are nearly one-hot. Each warning names its remedy.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind, entries, in_own_library, to_numpy
from credalens.checks.arrays import row_tolerance

FEW: Final = 4  # indices looked at along each axis, spread over all of it
FEWEST_AXES: Final = 4  # of members and their batch from which on the classes may not be the last
MANY_MEMBERS: Final = 100  # of one input
MANY_FOR_EACH_CLASS: Final = 10

PROBABILITIES: Final = (
    "these logits are probabilities: no value is negative and every row sums to one. A softmax of them is almost uniform, so "
    "all uncertainty comes out too high. Say that they are probabilities: wrap(probs) instead of wrap_logits, "
    'outputs="probabilities" in CredalWrapper, logits=False, no --logits.'
)
LAST_AXIS: Final = (
    "the last axis is taken for the classes, and the sizes of the axes are as in images of shape (batch, classes, "
    "height, width). Say where the classes are, class_axis=-3 for such images; its number counted from 0 confirms the last."
)


ALONG_ANOTHER: Final = (
    "these logits are probabilities, and their classes seem to lie elsewhere: no value is negative, and they sum to one along "
    "axis {axis}. If so, say wrap(probs, class_axis={axis}) instead of wrap_logits."
)
BEHIND_MEMBERS: Final = (
    "class_axis=1 of a stack is the axis behind the members, and the sizes of the others are as in images of shape (batch, "
    "classes, height, width), so that it may be the batch. Say class_axis=-3 for such images; its number counted from the end, "
    "{axis}, confirms axis 1."
)


def warn_many_members(x: Any, name: str, /, *, class_axis: int = -1, stacklevel: int = 2) -> None:
    """Warn if an array of two axes, which is read as (members, classes) of one input, has more members than anyone makes."""
    shape = _shape(x)
    if len(shape) != 2 or class_axis != -1 or shape[0] <= min(MANY_MEMBERS, MANY_FOR_EACH_CLASS * shape[1]):
        return
    count = shape[0]
    warnings.warn(
        f"{name} of shape {shape} are read as {count} members that predict one input. If they are what one model predicts for "
        f"{count} inputs, give them an axis of one member, {name}[None]; if members lie along another axis, name "
        f"it, member_axis=. If there are {count} members, an axis of one input says so: {name}[:, None].",
        stacklevel=stacklevel + 1,
    )


def few_rows(x: Any, /) -> Any:
    """Some rows of (..., classes), so few that looking at them costs nothing, in the library and on the device of ``x``."""
    if isinstance(x, list | tuple) and x and len(getattr(x[0], "shape", ())) > 1:
        return in_own_library([few_rows(member) for member in x[:: _step(len(x))]])
    array = in_own_library(x)
    return entries(array, tuple(slice(None, None, _step(size)) for size in array.shape[:-1]))


def _step(size: int) -> int:
    return max(1, math.ceil(size / FEW))


def are_distributions(x: Any, /) -> NDArray[np.bool_]:
    """Whether each of a few rows (..., classes) has no negative value and sums to one as far as its dtype can tell."""
    return _are_distributions(*to_numpy(x))


def _are_distributions(rows: NDArray, kind: ArrayKind) -> NDArray[np.bool_]:
    distance = np.abs(rows.sum(axis=-1, dtype=np.float64) - 1)
    return (rows >= 0).all(axis=-1) & (distance <= row_tolerance(kind.dtype))


def warn_doubtful_logits(x: Any, /, *, class_axis: int = -1, stacklevel: int = 2) -> None:
    """Warn if logits (members, *batch, classes) seem to be probabilities, or maps whose classes are on another axis.

    ``class_axis`` is where the caller said the classes were, before they were moved to the end.
    """
    shape = _shape(x)
    many_axes = len(shape) > FEWEST_AXES
    square = len(shape) >= FEWEST_AXES and shape[-1] == shape[-2]
    if class_axis == -1 and (square or (many_axes and shape[-3] < min(shape[-2:]))):  # as height and width
        warnings.warn(LAST_AXIS, stacklevel=stacklevel + 1)
    # Without its classes the batch looks like (classes, height, width).
    if class_axis == 1 and many_axes and (shape[-2] == shape[-3] or shape[1] < min(shape[-3:-1])):
        warnings.warn(BEHIND_MEMBERS.format(axis=1 - len(shape)), stacklevel=stacklevel + 1)
    rows, kind = to_numpy(few_rows(x))  # once, since that waits for a GPU
    if not rows.size or not ((rows >= 0) & (rows <= 1 + row_tolerance(kind.dtype))).all():
        return
    if _are_distributions(rows, kind).all():
        warnings.warn(PROBABILITIES, stacklevel=stacklevel + 1)
        return
    member = in_own_library(x[0] if isinstance(x, list | tuple) else entries(x, 0))
    sizes = [*enumerate(member.shape, start=-len(member.shape))]
    for axis in range(-len(sizes), -1):  # of the batch, counted from the end
        steps = [slice(None, None, 1 if place == axis else _step(size)) for place, size in sizes]
        values, kind = to_numpy(member[tuple(steps)])
        if member.shape[axis] > 1 and _are_distributions(np.moveaxis(values, axis, -1), kind).all():
            # Where that axis was before the classes were moved to the end.
            moved = class_axis if class_axis < 0 else class_axis - len(shape)
            place = [place for place in range(-len(shape), 0) if place != moved][axis + 1]
            warnings.warn(ALONG_ANOTHER.format(axis=place), stacklevel=stacklevel + 1)
            return


def _shape(x: Any) -> tuple[int, ...]:
    return (len(x), *_shape(x[0])) if isinstance(x, list | tuple) and x else tuple(np.shape(x))


ROWS: Final = 256  # looked at, spread over all
SAME: Final = 1e-6  # widest interval of members that are the same
EASY_ROWS: Final = 30  # this many rows of which all are certain prove that members are the same; fewer may be easy ones
CERTAIN: Final = 0.99
DISAGREE: Final = 0.1  # widest interval from which on members disagree
CONTRADICTIONS: Final = 3  # rows at least: members may be certain and wrong of one hard input

SINGLE_MEMBER: Final = (
    "there is a single member, so lower and upper probabilities are the same and epistemic uncertainty is zero. Give several: "
    "models trained from other seeds or on other rows, or several samples of a stochastic model."
)
SAME_MEMBERS: Final = (
    "all members predict the same, so epistemic uncertainty is zero. Train them from different seeds, or on different rows if "
    "they ignore their seed."
)
ONE_HOT_MEMBERS: Final = (
    "the members are nearly one-hot: most inputs on which they disagree have several classes between 0 and 1, which says "
    "little."
)
MAKE_LESS_CERTAIN: Final = (
    "Make the members less certain: divide their logits by a temperature, fitted on labelled inputs, or average several "
    "of them to one, such as twenty samples in five groups: probs.reshape(5, 4, *probs.shape[1:]).mean(1)."
)


def warn_single_member(count: int, /, *, stacklevel: int = 2) -> None:
    """Warn if there is only one member."""
    if count == 1:
        warnings.warn(SINGLE_MEMBER, stacklevel=stacklevel + 1)


def warn_of_members(prediction: Any, /, *, stacklevel: int = 2) -> None:
    """Warn of the members of a ``CredalPrediction`` if their credal set says little."""
    if prediction.n_members == 1:
        warn_single_member(1, stacklevel=stacklevel + 1)
    else:
        warn_crude_members(prediction.lower, prediction.upper, stacklevel=stacklevel + 1)


def warn_crude_members(lower: Any, upper: Any, /, *, remedy: str = MAKE_LESS_CERTAIN, stacklevel: int = 2) -> None:
    """Warn if the bounds (*batch, classes) show that several members are all the same, or nearly one-hot.

    ``remedy`` says what to do about one-hot members. Looks at a sample of the rows. The words never change, so that Python
    shows them once for each place of a call.
    """
    rows = [bounds.reshape(-1, bounds.shape[-1]) for bounds in (lower, upper)]
    low, high = (to_numpy(x[:: max(1, math.ceil(len(x) / ROWS))])[0] for x in rows)
    if not len(low):
        return
    widths = (high - low).max(axis=-1)
    if widths.max() <= SAME:
        # Unless the rows are only a few easy ones, on which any members would agree.
        several_classes = len(np.unique(high.argmax(axis=-1))) > 1
        if high.max(axis=-1).min() < CERTAIN or (several_classes and len(high) >= EASY_ROWS):
            warnings.warn(SAME_MEMBERS, stacklevel=stacklevel + 1)
        return
    contradict = (high >= CERTAIN).sum(axis=-1) >= 2  # members that disagree are certain, of a class each
    if contradict.sum() >= max(CONTRADICTIONS, (widths > DISAGREE).sum() / 2):
        warnings.warn(f"{ONE_HOT_MEMBERS} {remedy}", stacklevel=stacklevel + 1)
