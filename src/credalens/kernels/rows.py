"""Scratch memory for one row of bounds, filled up to whole vectors with classes that cannot have any mass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.buffers import aligned_empty
from credalens.kernels.simd.jit import inlined
from credalens.kernels.simd.vectors import WIDTH, load, load_some, positions, store, sum_of


class Row(NamedTuple):
    """The bounds of every class, and phi of both."""

    low: Any
    high: Any
    phi_low: Any
    phi_high: Any


def whole_vectors(classes: int, /) -> int:
    """The number of classes, rounded up to whole vectors."""
    return classes + -classes % WIDTH


def row_workspace(classes: int, /) -> NDArray[np.float64]:
    """Scratch memory for a `Row`."""
    return aligned_empty((4, whole_vectors(classes)))


@inlined
def row_of(workspace):
    """A `row_workspace` with names."""
    return Row(workspace[0], workspace[1], workspace[2], workspace[3])


@inlined
def last_vector(classes):
    """Where the last vector of a row begins, and which of its lanes are classes: at least one, at most all."""
    start = (classes - 1) - (classes - 1) % WIDTH
    return start, positions() < classes - start


@inlined
def read_row(lower, upper, row):
    """Copy the bounds of a row and return the sums of the lower ones and of the widths."""
    last, lanes = last_vector(lower.size)
    bottom, top = load_some(lower, last, lanes), load_some(upper, last, lanes)
    store(row.low, last, bottom)
    store(row.high, last, top)
    below, width = bottom, top - bottom
    for k in range(0, last, WIDTH):
        bottom, top = load(lower, k), load(upper, k)
        store(row.low, k, bottom)
        store(row.high, k, top)
        below, width = below + bottom, width + (top - bottom)
    return sum_of(below), sum_of(width)
