"""The few classes that a vertex cheaper than the best one seen might flip: what ``enumeration.py`` works on."""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.change import FAR, precedes
from credalens.core.kernels.jit import inlined, kernel
from credalens.core.kernels.knapsack import ROUNDING
from credalens.core.kernels.phi import phi

__all__ = ["AWAY", "CLASS", "DOWN", "HIGH", "KEEPS", "LOW", "MOST", "UP", "collect_items"]

MOST = 64  # items a side: the bits of a mask
DOWN, UP = np.int64(0), np.int64(1)  # sides
NOBODY, NONE = np.int64(-1), np.int64(0)  # not plain numbers: for those Numba would compile a copy of their own
AWAY, LOW, HIGH = range(3)  # floats of an item: |s_k - lambda|, l_k, u_k
CLASS, KEEPS = range(2)  # integers of an item: its class, and the mask of later ones that stay on its side if it does
MANY = 32  # items from which on it pays to look twice
E = np.e


@kernel
def _champions(m, lower, upper, slope, at, limit):
    """Of the classes too dear to flip, the one down with the largest l_k and the one up with the smallest u_k, or -1."""
    down, up = NOBODY, NOBODY
    for k in range(m):
        away = slope[k] - slope[at]
        if (upper[k] - lower[k]) * abs(away) >= limit:
            if away < 0.0:
                up = k if up < 0 or upper[k] < upper[up] else up
            else:
                down = k if down < 0 or lower[k] > lower[down] else down
    return down, up


@kernel
def _room(m, lower, upper, slope, at, limit, y):
    """More mass than this cannot be raised besides r: what the items that are up and one class above y can give."""
    room, most = ROUNDING, 0.0
    for k in range(m):
        away, width = slope[k] - slope[at], upper[k] - lower[k]
        room += width if (away <= 0.0) & (-width * away < limit) else 0.0
        most = max(most, upper[k] - max(lower[k], y))
    return room + most


@kernel
def _out_of_reach(m, lower, upper, slope, at, k, room, limit):
    """Whether raising class k, and with it all classes that dominate it (fact c), takes too much mass or costs too much."""
    mass, cost = upper[k] - lower[k], 0.0
    for i in range(m):
        above = (lower[i] >= lower[k]) & (upper[i] >= upper[k]) & ((lower[i] > lower[k]) | (upper[i] > upper[k]))
        if above and slope[i] > slope[at]:
            mass += upper[i] - lower[i]
            cost += (upper[i] - lower[i]) * (slope[i] - slope[at])
            if mass > room or cost >= limit:
                return True
    return False


@kernel
def _insert(keys, classes, n, key, k):
    """Insert a class where its key puts it among the first n."""
    while n > 0 and keys[n - 1] > key:
        keys[n], classes[n] = keys[n - 1], classes[n - 1]
        n -= 1
    keys[n], classes[n] = key, k


@kernel
def _describe(lower, upper, side, n, floats, integers):
    """Bounds of the items of one side, and the masks of the later ones that each keeps on that side (fact c)."""
    for i in range(n):
        k = integers[side, CLASS, i]
        floats[side, LOW, i], floats[side, HIGH, i] = lower[k], upper[k]
        integers[side, KEEPS, i] = 0
    for j in range(1, n):
        low, high = floats[side, LOW, j], floats[side, HIGH, j]
        for i in range(j):
            below = (floats[side, LOW, i] >= low) & (floats[side, HIGH, i] >= high)
            above = (floats[side, LOW, i] <= low) & (floats[side, HIGH, i] <= high)
            integers[side, KEEPS, i] |= np.int64(below if side == DOWN else above) << j


@inlined
def collect_items(m, known, at, r, limit, floats, integers):
    """(items down, items up, champions down and up, least slope for taking, for giving), items in order of |s_k - lambda|.

    More items than MOST: too many to enumerate.
    """
    lower, upper, phi_lower, phi_upper, slope, _ = known
    pivot = slope[at]
    y = 2.0**-pivot / E
    phi_y = phi(y)
    down, up = _champions(m, lower, upper, slope, at, limit)
    downs, ups, room = NONE, NONE, -1.0
    takes, gives = FAR, FAR
    for k in range(m):
        away = slope[k] - pivot
        first = precedes(away, k, at)
        item = (upper[k] - lower[k]) * abs(away) < limit
        if first:
            item &= up < 0 or lower[k] < lower[up] or upper[k] < upper[up]
        else:
            item &= down < 0 or lower[k] > lower[down] or upper[k] > upper[down]
        if item and downs >= MANY and not first:
            room = r + _room(m, lower, upper, slope, at, limit, y) if room < 0.0 else room
            item = not _out_of_reach(m, lower, upper, slope, at, k, room, limit)
        if item:
            side, n = (UP, ups) if first else (DOWN, downs)
            if n == MOST:
                return np.int64(MOST + 1), np.int64(MOST + 1), down, up, 0.0, 0.0
            _insert(floats[side, AWAY], integers[side, CLASS], n, abs(away), k)
            downs, ups = (downs, ups + 1) if first else (downs + 1, ups)
        if lower[k] < y and (item or k == down):
            takes = min(takes, (slope[k] if upper[k] <= y else (phi_y - phi_lower[k]) / (y - lower[k])) - pivot)
        if upper[k] > y and (item or k == up):
            gives = min(gives, pivot - (slope[k] if lower[k] >= y else (phi_upper[k] - phi_y) / (upper[k] - y)))
    _describe(lower, upper, DOWN, downs, floats, integers)
    _describe(lower, upper, UP, ups, floats, integers)
    return downs, ups, down, up, max(takes, 0.0), max(gives, 0.0)
