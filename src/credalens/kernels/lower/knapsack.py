"""What the lower-entropy search starts from: the classes whose side is open, in order of their chords' slopes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from credalens.kernels.lower.single_flip import chord_slope
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import bits_to_float, float_to_bits


class Core(NamedTuple):
    """The open classes in order of their slopes: bounds, phi of both, slopes, and their probabilities in the best vertex."""

    low: Any
    high: Any
    phi_low: Any
    phi_high: Any
    slope: Any
    vertex: Any


FEW = 96  # open classes up to which one pass without a cutoff is quickest
ROUNDING = 1e-13  # mass; the range of thresholds errs on the wide side
DECADES = 1e-12
HALVINGS = 8
BRIEF = 32  # elements up to which plain insertion is quickest


@kernel
def _widths_above(lower, upper, x, y):
    """sum of w_k over the classes with u_k >= x, and over those with l_k >= y."""
    at_upper, at_lower = 0.0, 0.0
    for k in range(lower.size):
        width = upper[k] - lower[k]
        at_upper += width if upper[k] >= x else 0.0
        at_lower += width if lower[k] >= y else 0.0
    return at_upper, at_lower


@inlined
def middle(a, b):
    """Between two non-negative numbers, about halfway on a logarithmic scale: halfway between their bits."""
    return bits_to_float((float_to_bits(a) + float_to_bits(b)) >> 1)


@kernel
def _threshold_range(lower, upper, need):
    """A range that contains the value x of the class between its bounds, found by bisection on a logarithmic scale.

    The classes up or at x have u_k >= x, so sum_{u_k >= x} w_k >= R; every class with l_k > x is up, so
    sum_{l_k > x} w_k <= R. Both sums fall as x rises.
    """
    least, most, below, above = DECADES, 1.0, DECADES, 1.0
    for _ in range(HALVINGS):
        x, y = middle(below, most), middle(least, above)
        at_upper, at_lower = _widths_above(lower, upper, x, y)
        enough, forced = at_upper >= need - ROUNDING, at_lower > need + ROUNDING
        below, most = (x if enough else below), (most if enough else x)
        least, above = (y if forced else least), (above if forced else y)
    return (least if least > DECADES else 0.0), most


@inlined
def collect_core(lower, upper, phi_lower, phi_upper, core, order, out):
    """Sort the open classes into ``core``, write the others to ``out``; return (number, open mass, base entropy).

    A class whose upper bound is below the range of thresholds is down, one whose lower bound is above it is up. The base
    entropy has every open class down. ``out`` may be empty.
    """
    need, base = 1.0, 0.0
    for k in range(lower.size):
        need -= lower[k]
    least, most = _threshold_range(lower, upper, need)
    for k in range(lower.size):
        up = lower[k] > most
        need -= upper[k] - lower[k] if up else 0.0
        base += phi_upper[k] if up else phi_lower[k]
    for k in range(out.size):
        out[k] = upper[k] if lower[k] > most else lower[k]
    m = np.int64(0)  # not a literal, for which `_sort` would be compiled as well
    for k in range(lower.size):
        order[m] = k  # kept only if m moves on: no branch to guess
        m += (upper[k] >= least) & (lower[k] <= most) & (upper[k] > lower[k])
    for i in range(m):
        k = order[i]
        core.slope[i] = chord_slope(lower[k], upper[k], phi_lower[k], phi_upper[k])
    _sort(core, order, lower, m)
    for i in range(m):
        k = order[i]
        core.low[i], core.high[i], core.phi_low[i], core.phi_high[i] = (
            lower[k],
            upper[k],
            phi_lower[k],
            phi_upper[k],
        )
    return m, need, base


@kernel
def _sort(core, order, lower, m):
    """Shell sort of the slopes and ``order``, ties by lower bound: an order that no label can change."""
    gap = 1
    while m > BRIEF and gap < m // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, m):
            key, item = core.slope[i], order[i]
            j = i - gap
            while j >= 0 and (core.slope[j] > key or (core.slope[j] == key and lower[order[j]] < lower[item])):
                core.slope[j + gap], order[j + gap] = core.slope[j], order[j]
                j -= gap
            core.slope[j + gap], order[j + gap] = key, item
        gap //= 3
