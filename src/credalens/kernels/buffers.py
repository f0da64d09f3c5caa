"""Memory of kernels: arrays that begin at a cache line, for results and scratch, and scratch memory for one row of bounds.

Vectors that straddle two cache lines make kernels a fifth slower. Fresh memory in pages of 4 KiB takes a quarter of the time
at a hundred classes; NumPy asks the system for pages of 2 MiB, but only for arrays from 4 MiB on: hence arrays that share
their memory. A row is filled up to whole vectors with classes that cannot have any mass.
"""

import math
from collections import namedtuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from credalens.kernels.simd.jit import inlined
from credalens.kernels.simd.vectors import WIDTH, load, load_some, positions, store, sum_of

LINE = 64  # bytes of a cache line, and of the widest vectors
APART = 17  # cache lines: arrays a multiple of a page apart would share few places in the cache
LARGE = 1 << 22  # bytes from which on NumPy asks for large pages
TINY = 1 << 12  # bytes up to which it takes longer to ask where memory begins than vectors save


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike = np.float64, /, *, lines: int = 0) -> NDArray:
    """As ``np.empty``, but beginning at a cache line, so many of them later."""
    size, width = math.prod(shape), np.dtype(dtype).itemsize
    memory = np.empty(size + (lines + 1) * LINE // width, dtype)
    skip = (-memory.__array_interface__["data"][0] % LINE + lines * LINE) // width
    return memory[skip : skip + size].reshape(shape)


def aligned_arrays(count: int, shape: tuple[int, ...], dtype: DTypeLike, /) -> list[NDArray]:
    """Several such arrays. Small ones share their memory; large ones do not, since each keeps alive what it shares.

    Those that are tiny even together begin anywhere.
    """
    size, width = math.prod(shape), np.dtype(dtype).itemsize
    if count * size * width <= TINY:
        return list(np.empty((count, *shape), dtype))
    if size * width >= LARGE:
        return [aligned_empty(shape, dtype, lines=APART * place) for place in range(count)]
    lines = math.ceil(size * width / LINE) + APART
    memory = aligned_empty((count, lines * LINE // width), dtype)
    return list(memory[:, :size].reshape(count, *shape))


Row = namedtuple("Row", "low high phi_low phi_high")
"""The bounds of every class, and phi of both."""


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
