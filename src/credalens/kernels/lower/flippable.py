"""The few classes that a vertex cheaper than the best one seen might flip: what ``enumeration.py`` works on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.lower.open_classes import ROUNDING
from credalens.kernels.lower.single_flip import FAR, chord_slope, precedes
from credalens.kernels.simd.jit import NOBODY, NONE, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    choose,
    everywhere,
    first_of,
    larger,
    least_of,
    load,
    most_of,
    positions,
    smaller,
)

__all__ = ["DOWN", "MOST", "UP", "ItemCounts", "Items", "collect_items", "items_of", "items_workspace"]

MOST = 64  # items a side: the bits of a mask
DOWN, UP = np.int64(0), np.int64(1)  # sides
MANY = 32  # items from which on it pays to look twice
E = np.e


class Items(NamedTuple):
    """What is known of the items of both sides (2, MOST), in order of |s_k - lambda|: that difference, l_k, u_k, the class,
    and the mask of later items that stay on its side if it does."""

    away: Any
    low: Any
    high: Any
    place: Any
    keeps: Any


class ItemCounts(NamedTuple):
    """How many items are down and up; their champions, or -1; the least slope for taking mass, and for giving it."""

    downs: Any
    ups: Any
    down_champion: Any
    up_champion: Any
    takes: Any
    gives: Any


def items_workspace() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scratch memory for `Items`."""
    return np.empty((3, 2, MOST)), np.empty((2, 2, MOST), np.int64)


@inlined
def items_of(floats, integers):
    """An `items_workspace` with names."""
    return Items(floats[0], floats[1], floats[2], integers[0], integers[1])


@inlined
def _dear(k, low, high, slope, pivot, limit):
    """Of a vector of classes those too dear to flip: which are up, and which are down."""
    away = load(slope, k) - pivot
    dear = ((load(high, k) - load(low, k)) * abs(away) >= limit) & (load(slope, k) < FAR)
    return dear & (away < 0.0), dear & (away >= 0.0)


@inlined
def _champions(m, low, high, slope, pivot, limit):
    """Of the classes too dear to flip, the one down with the largest l_k and the one up with the smallest u_k, or -1."""
    most, least = everywhere(-1.0), everywhere(FAR)
    for k in range(0, m, WIDTH):
        ups, downs = _dear(k, low, high, slope, pivot, limit)
        most = larger(choose(downs, load(low, k), -1.0), most)
        least = smaller(choose(ups, load(high, k), FAR), least)
    highest, lowest = most_of(most), least_of(least)
    down, up = NOBODY, NOBODY
    for k in range(m - 1 - (m - 1) % WIDTH, -1, -WIDTH):  # backwards: of equals, the first
        ups, downs = _dear(k, low, high, slope, pivot, limit)
        here, there = bits_of(downs & (load(low, k) == highest)), bits_of(ups & (load(high, k) == lowest))
        down = k + first_of(here) if here != 0 else down
        up = k + first_of(there) if there != 0 else up
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
def _insert(keys, places, n, key, k):
    """Insert a class where its key puts it among the first n."""
    while n > 0 and keys[n - 1] > key:
        keys[n], places[n] = keys[n - 1], places[n - 1]
        n -= 1
    keys[n], places[n] = key, k


@kernel
def _describe(lower, upper, side, n, items):
    """Bounds of the items of one side, and the masks of the later ones that each keeps on that side (fact c)."""
    for i in range(n):
        k = items.place[side, i]
        items.low[side, i], items.high[side, i] = lower[k], upper[k]
        items.keeps[side, i] = 0
    for j in range(1, n):
        low, high = items.low[side, j], items.high[side, j]
        for i in range(j):
            below = (items.low[side, i] >= low) & (items.high[side, i] >= high)
            above = (items.low[side, i] <= low) & (items.high[side, i] <= high)
            items.keeps[side, i] |= np.int64(below if side == DOWN else above) << j


@inlined
def _slope_up(low, high, phi_low, slope, y, phi_y):
    """The slope from the lower bound to y, or to the upper bound if that is nearer; FAR if the lower bound is above y."""
    slope = choose(high <= y, slope, chord_slope(low, y, phi_low, phi_y))
    return choose(low < y, slope, FAR)


@inlined
def _slope_down(low, high, phi_high, slope, y, phi_y):
    """The slope from y, or from the lower bound if that is nearer, to the upper bound; -FAR if the upper bound is below y."""
    slope = choose(low >= y, slope, chord_slope(y, high, phi_y, phi_high))
    return choose(high > y, slope, -FAR)


@inlined
def _might_flip(k, low, high, slope, at, limit, champions):
    """Of a vector of classes, as bits, those that are not too dear and that dominance (fact c) leaves free.

    A champion stays where it is, and with it every class that it dominates or that dominates it.
    """
    bottom, top, away = load(low, k), load(high, k), load(slope, k) - slope[at]
    low_down, high_down, low_up, high_up = champions
    first = precedes(away, positions() + k, at)
    free = choose(first, (bottom < low_up) | (top < high_up), (bottom > low_down) | (top > high_down))
    return bits_of(free & ((top - bottom) * abs(away) < limit) & (load(slope, k) < FAR))


@inlined
def collect_items(m, classes, at, r, limit, items):
    """Fill ``items`` with the classes that a vertex of a cost below ``limit`` might flip, and return the `ItemCounts`.

    More than MOST: too many to enumerate. In whole vectors up to the few that are items: nothing to guess for the rest.
    """
    lower, upper, slope = classes.low, classes.high, classes.slope
    pivot = slope[at]
    y = 2.0**-pivot / E
    phi_y = phi(y)
    down, up = _champions(m, lower, upper, slope, pivot, limit)
    low_down, high_down = (lower[down], upper[down]) if down >= 0 else (-1.0, -1.0)
    low_up, high_up = (lower[up], upper[up]) if up >= 0 else (FAR, FAR)
    takes = _slope_up(low_down, high_down, classes.phi_low[down], slope[down], y, phi_y) - pivot if down >= 0 else FAR
    gives = pivot - _slope_down(low_up, high_up, classes.phi_high[up], slope[up], y, phi_y) if up >= 0 else FAR
    downs, ups, room = NONE, NONE, -1.0
    for start in range(0, m, WIDTH):
        left = _might_flip(start, lower, upper, slope, at, limit, (low_down, high_down, low_up, high_up))
        while left != 0:
            k = start + first_of(left)
            left &= left - 1
            away = slope[k] - pivot
            side, n = (UP, ups) if precedes(away, k, at) else (DOWN, downs)
            if side == DOWN and downs >= MANY:
                room = r + _room(m, lower, upper, slope, at, limit, y) if room < 0.0 else room
                if _out_of_reach(m, lower, upper, slope, at, k, room, limit):
                    continue
            if n == MOST:
                return ItemCounts(np.int64(MOST + 1), np.int64(MOST + 1), down, up, 0.0, 0.0)
            _insert(items.away[side], items.place[side], n, abs(away), k)
            downs, ups = downs + (side == DOWN), ups + (side == UP)
            takes = min(takes, _slope_up(lower[k], upper[k], classes.phi_low[k], slope[k], y, phi_y) - pivot)
            gives = min(gives, pivot - _slope_down(lower[k], upper[k], classes.phi_high[k], slope[k], y, phi_y))
    _describe(lower, upper, DOWN, downs, items)
    _describe(lower, upper, UP, ups, items)
    return ItemCounts(downs, ups, down, up, max(takes, 0.0), max(gives, 0.0))
