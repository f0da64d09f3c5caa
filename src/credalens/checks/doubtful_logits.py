"""Values that can hardly be the logits they are said to be: probabilities, or maps whose last axis may not hold the classes."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import in_own_library, to_numpy
from credalens.checks.arrays import row_tolerance

FEW: Final = 4  # indices looked at along each axis, spread over all of it
FEWEST_AXES: Final = 4  # of members and their batch from which on the classes may not be the last

PROBABILITIES: Final = (
    "these logits are probabilities: no value is negative and every row sums to one. A softmax of them is almost uniform, so "
    "all uncertainty comes out too high. Say that they are probabilities: wrap(probs) instead of wrap_logits, "
    'outputs="probabilities" in CredalWrapper, logits=False, no --logits.'
)
LAST_AXIS: Final = (
    "the last axis is taken for the classes, and the sizes of the axes are as in images of shape (batch, classes, "
    "height, width). Say where the classes are, class_axis=-3 for such images; its number counted from 0 confirms the last."
)


def few_rows(x: Any, /) -> Any:
    """Some rows of (..., classes), so few that looking at them costs nothing, in the library and on the device of ``x``."""
    if isinstance(x, list | tuple) and x and len(getattr(x[0], "shape", ())) > 1:
        return in_own_library([few_rows(member) for member in x[:: _step(len(x))]])
    array = in_own_library(x)
    return array[tuple(slice(None, None, _step(size)) for size in array.shape[:-1])]


def _step(size: int) -> int:
    return max(1, math.ceil(size / FEW))


def are_distributions(x: Any, /) -> NDArray[np.bool_]:
    """Whether each of a few rows (..., classes) has no negative value and sums to one as far as its dtype can tell."""
    rows, kind = to_numpy(x)
    distance = np.abs(rows.sum(axis=-1, dtype=np.float64) - 1)
    return (rows >= 0).all(axis=-1) & (distance <= row_tolerance(kind.dtype))


def warn_doubtful_logits(x: Any, /, *, class_axis: int = -1, stacklevel: int = 2) -> None:
    """Warn if logits (members, *batch, classes) seem to be probabilities, or maps whose classes are on another axis.

    ``class_axis`` is where the caller said the classes were, before they were moved to the end.
    """
    rows = few_rows(x)
    shape = _shape(x)
    if class_axis == -1 and _like_images(shape):
        warnings.warn(LAST_AXIS, stacklevel=stacklevel + 1)
    truths = are_distributions(rows)
    if truths.size and truths.all():
        warnings.warn(PROBABILITIES, stacklevel=stacklevel + 1)


def _like_images(shape: tuple[int, ...]) -> bool:
    """Whether the last two axes seem to be height and width: both the same, or both longer than what may be the classes."""
    square = len(shape) >= FEWEST_AXES and shape[-1] == shape[-2]
    return square or (len(shape) > FEWEST_AXES and shape[-3] < min(shape[-2:]))


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(np.shape(x)) if not isinstance(x, list | tuple) else (len(x), *_shape(x[0]))
