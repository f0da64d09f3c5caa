"""What the lower-entropy search starts from: the classes whose side is open, in order of their chords' slopes."""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.jit import kernel

__all__ = ["collect_core", "threshold_range"]

DECADES = 1e-12
HALVINGS = 8


@kernel
def _width_above(lower, upper, bound, x):
    """sum of w_k over the classes with bound_k > x."""
    mass = 0.0
    for k in range(lower.size):
        mass += upper[k] - lower[k] if bound[k] > x else 0.0
    return mass


@kernel
def threshold_range(lower, upper, need):
    """A range that contains the value x of the class between its bounds, found by bisection on a logarithmic scale.

    The classes up or at x have u_k >= x, so sum_{u_k >= x} w_k >= R; every class with l_k > x is up, so
    sum_{l_k > x} w_k <= R. Both sums fall as x rises.
    """
    top = upper.max()
    least, most = 0.0, top
    a, b = DECADES * top, top
    for _ in range(HALVINGS):
        x = np.sqrt(a * b)
        if _width_above(lower, upper, upper, x) < need:
            b = most = x
        else:
            a = x
    a, b = DECADES * top, most
    for _ in range(HALVINGS):
        x = np.sqrt(a * b)
        if _width_above(lower, upper, lower, x) > need:
            a = least = x
        else:
            b = x
    return least, most


@kernel
def collect_core(lower, upper, phi_lower, phi_upper, least, most, need, core, order, out):
    """Sort the open classes into ``core``, write the others to ``out``; return (number, open mass, base entropy).

    Rows of ``core``: lower, upper, phi(lower), phi(upper), slope. A class whose upper bound is at most ``least`` is
    down, one whose lower bound is above ``most`` is up. The base entropy has every open class down.
    """
    m = 0
    base = 0.0
    slope = core[6]
    for k in range(lower.size):
        width = upper[k] - lower[k]
        base += phi_lower[k]
        out[k] = lower[k]
        if width <= 0.0 or upper[k] < least:
            continue
        if lower[k] > most:
            base += phi_upper[k] - phi_lower[k]
            need -= width
            out[k] = upper[k]
            continue
        slope[k] = (phi_upper[k] - phi_lower[k]) / width
        order[m] = k
        m += 1
    _sort(order, slope, lower, m)
    for i in range(m):
        k = order[i]
        core[0, i], core[1, i], core[2, i] = lower[k], upper[k], phi_lower[k]
        core[3, i], core[4, i] = phi_upper[k], slope[k]
    return m, need, base


@kernel
def _before(slope, lower, i, j):
    """By slope, ties by lower bound: an order that does not depend on the labels."""
    return slope[i] < slope[j] or (slope[i] == slope[j] and lower[i] > lower[j])


@kernel
def _sort(order, slope, lower, m):
    """Sort order[:m]: by insertion while short, else by a heap. No memory is taken."""
    if m <= 32:
        for i in range(1, m):
            item = order[i]
            j = i - 1
            while j >= 0 and _before(slope, lower, item, order[j]):
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = item
        return
    for start in range(m // 2 - 1, -1, -1):
        _sift(order, slope, lower, start, m)
    for end in range(m - 1, 0, -1):
        order[0], order[end] = order[end], order[0]
        _sift(order, slope, lower, 0, end)


@kernel
def _sift(order, slope, lower, root, end):
    while True:
        child = 2 * root + 1
        if child >= end:
            return
        if child + 1 < end and _before(slope, lower, order[child], order[child + 1]):
            child += 1
        if not _before(slope, lower, order[root], order[child]):
            return
        order[root], order[child] = order[child], order[root]
        root = child
