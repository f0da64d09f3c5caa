"""The lowest entropy of a row of any number of classes: every set of flips that might cost less than the best vertex seen.

Facts as in ``solve.py``, costs as in ``root.py``. The knapsack gives every class a side, up before the break class f and
down from f on; F is a set of flipped classes. The mass rho that F leaves over goes to one class that is down (rho > 0) or
comes from one that is up (rho < 0). With phi'(y) = lambda, a class between its bounds counts as down below y and as up
above, where leaving its bound only costs: so each vertex belongs to one F and costs as much as F or more.

- Only classes with d_k below the best cost can be in F, the *items*: some 40 of 1000 in flat predictions. In peaked ones
  the threshold (fact b) closes most of the others, those too small to cost anything.
- Of the classes that can take rho the one with the largest l_k does so cheapest, of those that can give it the one with
  the smallest u_k: phi is concave. Outside the items that is their champion: where it is too narrow, the cost is too high for
  the others as well. Either way rho costs kappa |rho| or more, kappa being the least slope from a bound to y.
- While rho > 0 the next class in order of |s_k - lambda| is raised or stays down for good, while rho < 0 it is lowered or
  stays up for good. No other order is needed: flips that only add to |rho| never help. What is still to be moved costs
  the next class's |s_k - lambda| or kappa, whichever is less.
- A class that stays down keeps down those it dominates (fact c); one that stays up keeps up those that dominate it.

Sets are masks of 64 bits, and a node costs a few operations on them.
"""

from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.lower.open_classes import ROUNDING
from credalens.kernels.lower.root import FAR, SLACK, chord_slope, precedes
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

MOST = 64  # items a side: the bits of a mask
DOWN, UP = np.int64(0), np.int64(1)  # sides
MANY = 32  # items from which on it pays to look twice
E = np.e
ONE = np.int64(1)
BEST = -1  # the place after the last node holds the best set seen

Items = namedtuple("Items", "away low high place keeps")
"""What is known of the items of both sides (2, MOST), in order of |s_k - lambda|: that difference, l_k, u_k, the class,
and the mask of later items that stay on its side if it does."""

ItemCounts = namedtuple("ItemCounts", "downs ups down_champion up_champion takes gives")
"""How many items are down and up; their champions, or -1; the least slope for taking mass, and for giving it."""


def items_workspace() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scratch memory for `Items`."""
    return np.empty((3, 2, MOST)), np.empty((2, 2, MOST), np.int64)


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
            while n > 0 and items.away[side, n - 1] > abs(away):
                items.away[side, n], items.place[side, n] = items.away[side, n - 1], items.place[side, n - 1]
                n -= 1
            items.away[side, n], items.place[side, n] = abs(away), k
            downs, ups = downs + (side == DOWN), ups + (side == UP)
            takes = min(takes, _slope_up(lower[k], upper[k], classes.phi_low[k], slope[k], y, phi_y) - pivot)
            gives = min(gives, pivot - _slope_down(lower[k], upper[k], classes.phi_high[k], slope[k], y, phi_y))
    _describe(lower, upper, DOWN, downs, items)
    _describe(lower, upper, UP, ups, items)
    return ItemCounts(downs, ups, down, up, max(takes, 0.0), max(gives, 0.0))


FlipSearch = namedtuple("FlipSearch", "items cost rho flipped stays following")
"""The items, and a stack of nodes: costs and rho; for both sides masks of flipped items, of items that stay, and the
next item. The best set seen has the class that takes its rho in place of the next item."""


def flips_workspace() -> tuple[NDArray[Any], ...]:
    """Scratch memory for a `FlipSearch`."""
    size = 2 * MOST + 1
    return *items_workspace(), np.empty((2, size)), np.empty((3, size, 2), np.int64)


@inlined
def flips_of(workspace):
    """A `flips_workspace` with names."""
    floats, integers, masses, nodes = workspace
    items = Items(floats[0], floats[1], floats[2], integers[0], integers[1])
    return FlipSearch(items, masses[0], masses[1], nodes[0], nodes[1], nodes[2])


@kernel
def _taker(lower, upper, rho, counts, flipped, champion, items):
    """The class that takes rho > 0, or gives -rho > 0, at the least cost; -1 if none can."""
    takes, best, at = rho > 0.0, -2.0, -ONE
    for side in range(2):
        away = flipped[side] if takes == (side == DOWN) else ~flipped[side]
        for i in range(counts[side]):
            low, high = items.low[side, i], items.high[side, i]
            rank = low if takes else -high
            if (away >> i) & 1 == 0 and rank > best and high - low >= abs(rho):
                best, at = rank, items.place[side, i]
    if champion >= 0 and (lower[champion] if takes else -upper[champion]) > best:
        at = champion if upper[champion] - lower[champion] >= abs(rho) else at
    return at


@kernel
def _push(search, size, cost, rho, flipped, stays, following):
    search.cost[size], search.rho[size] = cost, rho
    search.flipped[size, DOWN], search.flipped[size, UP] = flipped
    search.stays[size, DOWN], search.stays[size, UP] = stays
    search.following[size, DOWN], search.following[size, UP] = following
    return size + 1


@inlined
def cheapest_flips(start, best, limit, tolerance, max_nodes, search):
    """(least cost found or ``best``, lower bound of every vertex's cost, nodes) from a `RowRoot`, costs over the chord bound.

    Vertices that cost ``limit`` or more, or less than ``tolerance`` below the best, are not looked for. If there are too many
    items or nodes the bound is zero. A set that is better is left in ``search`` for `flip_vertex`.
    """
    classes, items = start.classes, search.items
    lower, upper = classes.low, classes.high
    count, size = 0, NONE
    counts = collect_items(start.m, classes, start.at, start.r, limit, items)
    if counts.downs > MOST:
        return best, 0.0, count
    cost, rho, fresh = 0.0, start.r, True
    down_mask, up_mask, down_stays, up_stays, down_next, up_next = NONE, NONE, NONE, NONE, NONE, NONE
    while True:
        side, i, n, kappa, champion = (
            (DOWN, down_next, counts.downs, counts.takes, counts.down_champion)
            if rho > 0.0
            else (UP, up_next, counts.ups, counts.gives, counts.up_champion)
        )
        if fresh:
            count += 1
            if count > max_nodes:
                return best, 0.0, count
            if cost + kappa * abs(rho) < limit:
                k = _taker(lower, upper, rho, (counts.downs, counts.ups), (down_mask, up_mask), champion, items)
                value = cost if abs(rho) <= SLACK else FAR
                if k >= 0 and abs(rho) > SLACK:
                    end, phi_end = (lower[k], classes.phi_low[k]) if rho > 0.0 else (upper[k], classes.phi_high[k])
                    value = cost + phi(end + rho) - phi_end - classes.slope[start.at] * rho
                if value < best:
                    best, limit = value, min(limit, value - tolerance)
                    search.flipped[BEST, DOWN], search.flipped[BEST, UP] = down_mask, up_mask
                    search.following[BEST, 0], search.rho[BEST] = k, rho
        fresh = False
        if i < n and cost + abs(rho) * min(items.away[side, i], kappa) < limit:
            width, keeps = items.high[side, i] - items.low[side, i], items.keeps[side, i]
            dearer = cost + width * items.away[side, i]
            free = ((down_stays if rho > 0.0 else up_stays) >> i) & 1 == 0
            fresh = free and dearer < limit
            stays = (down_stays | keeps, up_stays) if rho > 0.0 else (down_stays, up_stays | keeps)
            down_next, up_next = (down_next + 1, up_next) if rho > 0.0 else (down_next, up_next + 1)
            if fresh:
                size = _push(search, size, cost, rho, (down_mask, up_mask), stays, (down_next, up_next))
                cost = dearer
                if rho > 0.0:
                    down_mask |= ONE << i
                    rho -= width
                else:
                    up_mask |= ONE << i
                    rho += width
            else:
                down_stays, up_stays = stays
        elif size > 0:
            size -= 1
            cost, rho = search.cost[size], search.rho[size]
            down_mask, up_mask = search.flipped[size, DOWN], search.flipped[size, UP]
            down_stays, up_stays = search.stays[size, DOWN], search.stays[size, UP]
            down_next, up_next = search.following[size, DOWN], search.following[size, UP]
        else:
            return best, min(limit, best), count


@inlined
def write_vertex(start, r, low, out):
    """The vertex of the knapsack: open classes on its side, r to f, and all closed classes down."""
    classes, at, order = start.classes, start.at, start.classes.order
    for k in range(out.size):
        out[k] = low[k]
    for k in range(start.m):
        first = precedes(classes.slope[k] - classes.slope[at], k, at)
        if order[k] < out.size:  # what fills up a short row has no place
            out[order[k]] = classes.high[k] if first else classes.low[k]
    if start.m > 0:
        out[order[at]] = min(out[order[at]] + r, classes.high[at])


@inlined
def flip_vertex(classes, search, out):
    """From there, without r, to the best vertex that `cheapest_flips` found."""
    for side in range(2):
        mask = search.flipped[BEST, side]
        for i in range(MOST):
            if (mask >> i) & 1 == 1:
                k = search.items.place[side, i]
                out[classes.order[k]] = classes.high[k] if side == DOWN else classes.low[k]
    k = search.following[BEST, 0]
    if k >= 0:
        place = classes.order[k]
        out[place] = min(max(out[place] + search.rho[BEST], classes.low[k]), classes.high[k])
