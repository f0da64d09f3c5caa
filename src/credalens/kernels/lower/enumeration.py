"""The lowest entropy of a row of any number of classes: every set of flips that might cost less than the best vertex seen.

Facts as in ``solve.py``, costs as in ``single_flip.py``. The knapsack gives every class a side, up before the break class f and
down from f on; F is a set of flipped classes. The mass rho that F leaves over goes to one class that is down (rho > 0) or
comes from one that is up (rho < 0). With phi'(y) = lambda, a class between its bounds counts as down below y and as up
above, where leaving its bound only costs: so each vertex belongs to one F and costs as much as F or more.

- Only classes with d_k below the best cost can be in F: some 40 of 1000 in flat predictions. In peaked ones the threshold
  (fact b) closes most of the others, those too small to cost anything.
- Of the classes that can take rho the one with the largest l_k does so cheapest, of those that can give it the one with
  the smallest u_k: phi is concave. Outside the items that is their champion: where it is too narrow, the cost is too high for
  the others as well. Either way rho costs kappa |rho| or more, kappa being the least slope from a bound to y.
- While rho > 0 the next class in order of |s_k - lambda| is raised or stays down for good, while rho < 0 it is lowered or
  stays up for good. No other order is needed: flips that only add to |rho| never help. What is still to be moved costs
  the next class's |s_k - lambda| or kappa, whichever is less.
- A class that stays down keeps down those it dominates (fact c); one that stays up keeps up those that dominate it.

Sets are masks of 64 bits, and a node costs a few operations on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.lower.flippable import DOWN, MOST, UP, Items, collect_items, items_of, items_workspace
from credalens.kernels.lower.single_flip import FAR, SLACK, precedes
from credalens.kernels.simd.jit import NONE, inlined, kernel
from credalens.kernels.simd.phi import phi

ONE = np.int64(1)
BEST = -1  # the place after the last node holds the best set seen


class FlipSearch(NamedTuple):
    """The items, and a stack of nodes: costs and rho; for both sides masks of flipped items, of items that stay, and the
    next item. The best set seen has the class that takes its rho in place of the next item."""

    items: Items
    cost: Any
    rho: Any
    flipped: Any
    stays: Any
    following: Any


def flips_workspace() -> tuple[NDArray[Any], ...]:
    """Scratch memory for a `FlipSearch`."""
    size = 2 * MOST + 1
    return *items_workspace(), np.empty((2, size)), np.empty((3, size, 2), np.int64)


@inlined
def flips_of(workspace):
    """A `flips_workspace` with names."""
    floats, integers, masses, nodes = workspace
    return FlipSearch(items_of(floats, integers), masses[0], masses[1], nodes[0], nodes[1], nodes[2])


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
def _remember(search, flipped, taker, rho):
    """Write the best set seen."""
    search.flipped[BEST, DOWN], search.flipped[BEST, UP] = flipped
    search.following[BEST, 0], search.rho[BEST] = taker, rho


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
                    _remember(search, (down_mask, up_mask), k, rho)
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
def write_vertex(start, r, out):
    """Every open class on the knapsack's side, and r to f."""
    classes, at, order = start.classes, start.at, start.classes.order
    for k in range(start.m):
        first = precedes(classes.slope[k] - classes.slope[at], k, at)
        if order[k] < out.size:  # what fills up a short row has no place
            out[order[k]] = classes.high[k] if first else classes.low[k]
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
