"""What the lower-entropy search starts from: the classes whose side is open, in order of their chords' slopes."""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.jit import kernel

__all__ = ["collect_core", "threshold_range"]

DECADES = 1e-12
HALVINGS = 7


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

    Rows of ``core``: lower, upper, phi(lower), phi(upper), slope. A class whose upper bound is below ``least`` is down,
    one whose lower bound is above ``most`` is up. The base entropy has every open class down.
    """
    m = 0
    base = 0.0
    for k in range(lower.size):
        out[k] = lower[k]
        base += phi_lower[k]
    for k in range(lower.size):
        if upper[k] < least or upper[k] <= lower[k]:
            continue
        if lower[k] > most:
            base += phi_upper[k] - phi_lower[k]
            need -= upper[k] - lower[k]
            out[k] = upper[k]
            continue
        core[4, m] = (phi_upper[k] - phi_lower[k]) / (upper[k] - lower[k])
        order[m] = k
        m += 1
    _sort(core, order, lower, m)
    for i in range(m):
        k = order[i]
        core[0, i], core[1, i], core[2, i], core[3, i] = lower[k], upper[k], phi_lower[k], phi_upper[k]
    return m, need, base


@kernel
def _sort(core, order, lower, m):
    """Shell sort of the slopes core[4] and ``order``, ties by lower bound: an order that no label can change."""
    gap = 1
    while gap < m // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, m):
            key, item = core[4, i], order[i]
            j = i - gap
            while j >= 0 and (core[4, j] > key or (core[4, j] == key and lower[order[j]] < lower[item])):
                core[4, j + gap], order[j + gap] = core[4, j], order[j]
                j -= gap
            core[4, j + gap], order[j + gap] = key, item
        gap //= 3
