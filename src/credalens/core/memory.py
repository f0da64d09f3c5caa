"""Memory for results and scratch: it begins at a cache line and, where it is large, at a large page.

Vectors that straddle two cache lines make kernels a fifth slower. Fresh results in pages of 4 KiB take a quarter of the
time at a hundred classes; NumPy asks for pages of 2 MiB from 4 MiB on, but the system can give them only where such a
page would begin.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["aligned_arrays", "aligned_empty"]

LINE = 64  # bytes of a cache line, and of the widest vectors
PAGE = 1 << 21  # bytes
LARGE = 1 << 22  # bytes


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike = np.float64, /) -> NDArray:
    """As ``np.empty``, but beginning at a cache line, or at a large page."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    step = PAGE if size >= LARGE else LINE
    memory = np.empty(size + step, np.uint8)
    skip = -memory.__array_interface__["data"][0] % step
    return memory[skip : skip + size].view(dtype).reshape(shape)


def aligned_arrays(count: int, shape: tuple[int, ...], dtype: DTypeLike, /) -> list[NDArray]:
    """Several such arrays. Small ones share their memory, so that together they may be large; large ones do not, lest
    whoever keeps one of them keeps all.
    """
    size, width = math.prod(shape), np.dtype(dtype).itemsize
    if size * width >= LARGE:
        return [aligned_empty(shape, dtype) for _ in range(count)]
    lines = math.ceil(size * width / LINE)
    memory = aligned_empty((count, lines * LINE // width), dtype)
    return [part[:size].reshape(shape) for part in memory]
