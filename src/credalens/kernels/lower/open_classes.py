"""The classes whose side is open: those that reach the least value the class between its bounds can have (fact b).

In peaked predictions these are few, 13 of 100, and all that follows works on them alone.
"""

from collections import namedtuple

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.buffers import aligned_empty, whole_vectors
from credalens.kernels.simd.jit import NONE, inlined
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    bits_to_float,
    choose,
    count,
    everywhere,
    float_to_bits,
    larger,
    load,
    most_of,
    positions,
    smaller,
    store,
    sum_of,
)

ROUNDING = 1e-13  # mass; the range of thresholds errs on the wide side
DECADES = 1e-12
STEPS = 6  # lower bounds tried one after the other
HALVINGS = 6
SHORT = 2 * WIDTH  # classes; to gather those of a shorter row takes longer than it saves

# For eight conditions, as bits of an integer, the lanes where they hold, and then the others.
_BITS = np.unpackbits(np.arange(1 << WIDTH, dtype=np.uint8)[:, None], axis=1, bitorder="little")
LANES_OF = np.argsort(1 - _BITS, axis=1, kind="stable").astype(np.int8).reshape(-1)


@inlined
def middle(a, b):
    """Between two non-negative numbers, about halfway on a logarithmic scale: halfway between their bits."""
    return bits_to_float((float_to_bits(a) + float_to_bits(b)) >> 1)


OpenClasses = namedtuple("OpenClasses", "low high phi_low phi_high slope order")
"""Bounds, phi of both, chord slopes and numbers of the open classes, in whole vectors.

Classes that fill up a vector, and closed ones of a short row, have a slope that no class has.
"""


def open_workspace(classes: int, /) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scratch memory for open classes: five rows of floats, and the numbers of the classes."""
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
    mass, greatest = everywhere(0.0), everywhere(0.0)
    for k in range(0, low.size, WIDTH):
        bottom, top = load(low, k), load(high, k)
        above = bottom >= x
        mass = mass + choose(above, top - bottom, 0.0)
        greatest = larger(choose(above, 0.0, bottom), greatest)
    return sum_of(mass), most_of(greatest)


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
def _gather(row, least, classes):
    """Copy the classes that have a width and reach ``least``; returns their number."""
    m = NONE
    for k in range(0, row.low.size, WIDTH):
        bottom, top = load(row.low, k), load(row.high, k)
        bits = bits_of((top >= least) & (top > bottom))
        store(classes.order, m, load(LANES_OF, WIDTH * bits) + k)  # valid only as far as m moves on: nothing branches
        m += count(bits)
    for j in range(m):
        k = classes.order[j]
        classes.low[j], classes.high[j] = row.low[k], row.high[k]
        classes.phi_low[j], classes.phi_high[j] = row.phi_low[k], row.phi_high[k]
    store(classes.low, m, everywhere(0.0))
    store(classes.high, m, everywhere(0.0))
    return m


@inlined
def open_classes(row, peaks, need, workspace):
    """(number, least threshold, classes) of the open classes; ``peaks`` are the two greatest lower bounds, see `peaks_of`.

    Those of a short row stay where they are: `chord_slopes` leaves out the classes below the threshold.
    """
    least = _least_threshold(row.low, row.high, peaks, need)
    if row.low.size > SHORT:
        return _gather(row, least, workspace), least, workspace
    for k in range(0, row.low.size, WIDTH):
        store(workspace.order, k, positions() + k)
    in_place = OpenClasses(row.low, row.high, row.phi_low, row.phi_high, workspace.slope, workspace.order)
    return NONE + row.low.size, least, in_place
