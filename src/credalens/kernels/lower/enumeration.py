"""The lowest entropy of a row of any number of classes: every set of flips that might cost less than the best vertex seen.

Facts as in ``lower.py``, costs as in ``change.py``. The knapsack gives every class a side, up before the break class f and
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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.lower.items import AWAY, CLASS, DOWN, HIGH, KEEPS, LOW, MOST, UP, collect_items
from credalens.kernels.lower.single_flip import FAR, SLACK, precedes
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.phi import phi

__all__ = ["cheapest_flips", "flip_vertex", "flips_workspace", "write_vertex"]

ONE = np.int64(1)
FLIPPED, STAYS, NEXT = 0, 2, 4  # integers of a node, each for both sides
COST, RHO = 0, 1  # floats of a node
TAKER = 2  # of the set found


def flips_workspace() -> tuple[NDArray[Any], ...]:
    """Scratch memory: floats and integers of the items, then of the nodes."""
    size = 2 * MOST + 1
    items = np.empty((2, 3, MOST)), np.empty((2, 2, MOST), np.int64)
    return *items, np.empty((size, 2)), np.empty((size, 6), np.int64)


@kernel
def _taker(lower, upper, rho, items, flipped, champion, floats, integers):
    """The class that takes rho > 0, or gives -rho > 0, at the least cost; -1 if none can."""
    takes, best, at = rho > 0.0, -2.0, -ONE
    for side in range(2):
        away = flipped[side] if takes == (side == DOWN) else ~flipped[side]
        for i in range(items[side]):
            low, high = floats[side, LOW, i], floats[side, HIGH, i]
            rank = low if takes else -high
            if (away >> i) & 1 == 0 and rank > best and high - low >= abs(rho):
                best, at = rank, integers[side, CLASS, i]
    if champion >= 0 and (lower[champion] if takes else -upper[champion]) > best:
        at = champion if upper[champion] - lower[champion] >= abs(rho) else at
    return at


@kernel
def _remember(nodes, masses, down_mask, up_mask, taker, rho):
    """Keep the best set in the place after the last node."""
    nodes[-1, FLIPPED], nodes[-1, FLIPPED + 1], nodes[-1, TAKER], masses[-1, RHO] = down_mask, up_mask, taker, rho


@kernel
def _push(nodes, masses, size, cost, rho, flipped, stays, following):
    masses[size, COST], masses[size, RHO] = cost, rho
    nodes[size, FLIPPED], nodes[size, FLIPPED + 1] = flipped
    nodes[size, STAYS], nodes[size, STAYS + 1] = stays
    nodes[size, NEXT], nodes[size, NEXT + 1] = following
    return size + 1


@inlined
def cheapest_flips(m, known, at, r, best, limit, tolerance, max_nodes, workspace):
    """(least cost found or ``best``, lower bound of every vertex's cost, nodes), costs over the chord bound.

    Vertices that cost ``limit`` or more, or less than ``tolerance`` below the best, are not looked for. If there are too many
    items or nodes the bound is zero. A set that is better is left in the workspace for `flip_vertex`.
    """
    lower, upper, phi_lower, phi_upper, slope, _ = known
    floats, integers, masses, nodes = workspace
    none, count, size = np.int64(0), 0, np.int64(0)
    downs, ups, down, up, takes, gives = collect_items(m, known, at, r, limit, floats, integers)
    if downs > MOST:
        return best, 0.0, count
    cost, rho, fresh = 0.0, r, True
    down_mask, up_mask, down_stays, up_stays, down_next, up_next = none, none, none, none, none, none
    while True:
        side, i, n, kappa, champion = (
            (DOWN, down_next, downs, takes, down) if rho > 0.0 else (UP, up_next, ups, gives, up)
        )
        if fresh:
            count += 1
            if count > max_nodes:
                return best, 0.0, count
            if cost + kappa * abs(rho) < limit:
                k = _taker(lower, upper, rho, (downs, ups), (down_mask, up_mask), champion, floats, integers)
                value = cost if abs(rho) <= SLACK else FAR
                if k >= 0 and abs(rho) > SLACK:
                    end, phi_end = (lower[k], phi_lower[k]) if rho > 0.0 else (upper[k], phi_upper[k])
                    value = cost + phi(end + rho) - phi_end - slope[at] * rho
                if value < best:
                    best, limit = value, min(limit, value - tolerance)
                    _remember(nodes, masses, down_mask, up_mask, k, rho)
        fresh = False
        if i < n and cost + abs(rho) * min(floats[side, AWAY, i], kappa) < limit:
            width, keeps = floats[side, HIGH, i] - floats[side, LOW, i], integers[side, KEEPS, i]
            dearer = cost + width * floats[side, AWAY, i]
            free = ((down_stays if rho > 0.0 else up_stays) >> i) & 1 == 0
            fresh = free and dearer < limit
            stays = (down_stays | keeps, up_stays) if rho > 0.0 else (down_stays, up_stays | keeps)
            down_next, up_next = (down_next + 1, up_next) if rho > 0.0 else (down_next, up_next + 1)
            if fresh:
                size = _push(nodes, masses, size, cost, rho, (down_mask, up_mask), stays, (down_next, up_next))
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
            cost, rho = masses[size, COST], masses[size, RHO]
            down_mask, up_mask = nodes[size, FLIPPED], nodes[size, FLIPPED + 1]
            down_stays, up_stays = nodes[size, STAYS], nodes[size, STAYS + 1]
            down_next, up_next = nodes[size, NEXT], nodes[size, NEXT + 1]
        else:
            return best, min(limit, best), count


@inlined
def write_vertex(m, known, at, r, out):
    """Every open class on the knapsack's side, and r to f."""
    lower, upper, _, _, slope, order = known
    for k in range(m):
        first = precedes(slope[k] - slope[at], k, at)
        out[order[k]] = upper[k] if first else lower[k]
    out[order[at]] = min(out[order[at]] + r, upper[at])


@inlined
def flip_vertex(known, workspace, out):
    """From there, without r, to the best vertex that `cheapest_flips` found."""
    lower, upper, _, _, _, order = known
    _, integers, masses, nodes = workspace
    for side in range(2):
        mask = nodes[-1, FLIPPED + side]
        for i in range(MOST):
            if (mask >> i) & 1 == 1:
                k = integers[side, CLASS, i]
                out[order[k]] = upper[k] if side == DOWN else lower[k]
    k = nodes[-1, TAKER]
    if k >= 0:
        out[order[k]] = min(max(out[order[k]] + masses[-1, RHO], lower[k]), upper[k])
