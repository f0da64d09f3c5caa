"""One row of bounds at a time, filled up to whole vectors, at least by one class, with classes that cannot have any mass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.core.memory import aligned_empty
from credalens.kernels.simd.jit import inlined
from credalens.kernels.simd.vectors import WIDTH, load, load_some, positions, store, sum_of

__all__ = ["read_row", "row_workspace", "whole_vectors"]


def whole_vectors(classes: int, /) -> int:
    """Whole vectors, in classes, that hold so many and at least one more."""
    return classes - classes % WIDTH + WIDTH


def row_workspace(classes: int, /) -> NDArray[np.float64]:
    """Scratch memory for a row: lower and upper bounds, and phi of both."""
    return aligned_empty((4, whole_vectors(classes)))


@inlined
def read_row(lower, upper, low, high):
    """Copy the bounds of a row, fill up with zeros, and return the sums of the lower ones and of the widths."""
    whole = lower.size - lower.size % WIDTH
    rest = positions() < lower.size - whole
    bottom, top = load_some(lower, whole, rest), load_some(upper, whole, rest)
    store(low, whole, bottom)
    store(high, whole, top)
    below, width = bottom, top - bottom
    for k in range(0, whole, WIDTH):
        bottom, top = load(lower, k), load(upper, k)
        store(low, k, bottom)
        store(high, k, top)
        below, width = below + bottom, width + (top - bottom)
    return sum_of(below), sum_of(width)
