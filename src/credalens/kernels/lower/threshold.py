"""The classes whose side is open: those that reach the least value the class between its bounds can have (fact b).

In peaked predictions these are few, 13 of 100, and all that follows works on them alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.core.memory import aligned_empty
from credalens.kernels.lower.knapsack import DECADES, ROUNDING, middle
from credalens.kernels.lower.single_flip import larger, smaller
from credalens.kernels.rows import whole_vectors
from credalens.kernels.simd.jit import NONE, inlined
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    choose,
    count,
    everywhere,
    load,
    most_of,
    positions,
    store,
    sum_of,
)

__all__ = ["no_peaks", "open_classes", "open_workspace", "peaks_more", "peaks_of"]

STEPS = 6  # lower bounds tried one after the other
HALVINGS = 6

# For eight conditions, as bits of an integer, the lanes where they hold, and then the others.
_BITS = np.unpackbits(np.arange(1 << WIDTH, dtype=np.uint8)[:, None], axis=1, bitorder="little")
LANES_OF = np.argsort(1 - _BITS, axis=1, kind="stable").astype(np.int8).reshape(-1)


def open_workspace(classes: int, /) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scratch memory for open classes: lower and upper bounds, phi of both, slopes; and which classes they are."""
    size = whole_vectors(classes) + WIDTH
    return aligned_empty((5, size)), np.empty(size, np.int64)


@inlined
def no_peaks():
    """What `peaks_more` begins with."""
    return everywhere(0.0), everywhere(0.0)


@inlined
def peaks_more(bottom, peaks):
    """Add a vector of lower bounds to the two greatest of every lane."""
    first, second = peaks
    return larger(bottom, first), larger(smaller(bottom, first), second)


@inlined
def peaks_of(peaks):
    """The greatest lower bound, and the next one; of several that are greatest, those of different lanes are one."""
    first, second = peaks
    most = most_of(first)
    return most, most_of(choose(first == most, second, first))


@inlined
def _widths_from(low, high, x):
    """sum of w_k over the classes with l_k >= x, and the greatest lower bound of the others."""
    mass, others = everywhere(0.0), everywhere(0.0)
    for k in range(0, low.size, WIDTH):
        bottom, top = load(low, k), load(high, k)
        above = bottom >= x
        mass = mass + choose(above, top - bottom, 0.0)
        bottom = choose(above, 0.0, bottom)
        others = larger(bottom, others)
    return sum_of(mass), most_of(others)


@inlined
def _least_threshold(low, high, peaks, need):
    """A bound that the value x of the class between its bounds is not below: the classes with l_k > x are up, so
    sum_{l_k > x} w_k <= R. The greatest lower bounds are tried one by one; then halfway to zero.

    They begin with the second: where every bound is reached, no width is more than R.
    """
    first, second = peaks
    x = second if second > 0.0 else first
    for _ in range(STEPS):
        mass, after = _widths_from(low, high, x)
        if mass > need + ROUNDING:
            return x
        if after <= 0.0:
            return 0.0
        x = after
    least, above, first = 0.0, x, min(DECADES, x)
    for _ in range(HALVINGS):
        x = middle(max(first, least), above)
        mass, _ = _widths_from(low, high, x)
        least, above = (x, above) if mass > need + ROUNDING else (least, x)
    return least


@inlined
def open_classes(low, high, phi_low, phi_high, peaks, need, known):
    """Fill the workspace with the classes that have a width and reach the least threshold; return their number.

    ``peaks`` are the two greatest lower bounds, see `peaks_of`.
    """
    open_low, open_high, open_phi_low, open_phi_high, _, order = known
    least = _least_threshold(low, high, peaks, need)
    m = NONE
    for k in range(0, low.size, WIDTH):
        bottom, top = load(low, k), load(high, k)
        bits = bits_of((top >= least) & (top > bottom))
        store(order, m, load(LANES_OF, WIDTH * bits) + k)  # kept only as far as m moves on: no branch to guess
        m += count(bits)
    store(order, m, positions() * 0 + (low.size - 1))
    for i in range(0, m, WIDTH):
        for j in range(i, i + WIDTH):
            k = order[j]
            open_low[j], open_high[j] = low[k], high[k]
            open_phi_low[j], open_phi_high[j] = phi_low[k], phi_high[k]
    return m
