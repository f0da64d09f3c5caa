"""The lowest entropy of a row of few classes that one change leaves open: every vertex that might still be better.

Facts as in ``lower.py``, costs as in ``change.py``. The sets of flips that cost less than the best vertex seen are few once
fact b has ruled out what no optimum flips, above all the tiny classes, whose d_k are tiny too: seldom more than ten for ten
classes. For each set, f is at one of its bounds, which costs nothing, and one class takes or gives what remains; where f is
down that may be f itself.

``enumeration.py`` does the same for any number of classes, in an order that needs them sorted; for few classes that takes
longer than to try all sets, and two seconds more to compile. Rows with more than MOST_SETS sets are left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from credalens.kernels.lower.knapsack import ROUNDING
from credalens.kernels.lower.single_flip import FAR, precedes
from credalens.kernels.simd.jit import kernel
from credalens.kernels.simd.phi import phi

__all__ = ["ROOT", "settle_rows"]

MOST_SETS = 64
NOTHING = 4e-15  # mass; what may be left of none after some 24 sums

# What is known of the root: f, lambda, r, R, the cost of the best vertex seen, the chord bound, and the least differences of
# slope before and after f.
AT, LAMBDA, TAKEN, NEED, BEST, BASE, BEFORE, AFTER, ROOT = range(9)

# What is known of each class: its bounds, phi at the end where the vertex found has it, the way from there to the other
# end (negative: down), and d, which is FAR for f and where there is no width.
LOW, HIGH, PHI_END, WAY, COST = range(5)


@kernel
def _describe(classes, f, slope_f, known):
    """``known`` of one row from l, u, phi of both, and slope of its classes."""
    for k in range(known.shape[1]):
        low, high, phi_low, phi_high, slope = classes[0, k], classes[1, k], classes[2, k], classes[3, k], classes[4, k]
        away = slope - slope_f
        first = precedes(away, k, f)
        known[LOW, k], known[HIGH, k] = low, high
        known[PHI_END, k] = phi_high if first else phi_low
        known[WAY, k] = low - high if first else high - low
        known[COST, k] = (high - low) * abs(away) if (slope < FAR) & (k != f) else FAR


@kernel
def _ends(known, low_f, high_f):
    """The lowest lower bound of the classes that are up, the highest upper bound of those that are down, f among both."""
    lowest, highest = low_f, high_f
    for k in range(known.shape[1]):
        lowest = known[LOW, k] if (known[WAY, k] < 0.0) & (known[LOW, k] < lowest) else lowest
        highest = known[HIGH, k] if (known[WAY, k] > 0.0) & (known[HIGH, k] > highest) else highest
    return lowest, highest


@kernel
def _may_flip(k, known, need):
    """Fact b: where class k is up, all classes above it are up as well; where it is down, all below it are down."""
    low, high = known[LOW, k], known[HIGH, k]
    forced, left = high - low, low - high
    for j in range(known.shape[1]):
        width = known[HIGH, j] - known[LOW, j]
        forced += width if known[LOW, j] > high else 0.0
        left += width if known[HIGH, j] >= low else 0.0
    return left >= need - ROUNDING if known[WAY, k] < 0.0 else forced <= need + ROUNDING


@kernel
def _collect_sets(known, best, need, low_f, high_f, sets, costs, masses):
    """Sets of classes (as bits) whose flips cost less than ``best``, what they cost, and the mass they leave to others.

    Returns how many, or more than MOST_SETS if they are too many.
    """
    lowest, highest = _ends(known, low_f, high_f)
    sets[0], costs[0], masses[0] = 0, 0.0, 0.0
    size = np.int64(1)
    for k in range(known.shape[1]):
        # The first three are quick to see and spare most classes the fourth.
        if (
            known[COST, k] >= best
            or known[HIGH, k] < lowest
            or known[LOW, k] > highest
            or not _may_flip(k, known, need)
        ):
            continue
        for s in range(size):
            if costs[s] + known[COST, k] < best:
                if size == MOST_SETS:
                    return size + 1
                sets[size] = sets[s] | (1 << k)
                costs[size], masses[size] = costs[s] + known[COST, k], masses[s] - known[WAY, k]
                size += 1
    return size


@kernel
def _cost_of_rest(known, rest, flipped, slope_f):
    """What it costs at least that one class which is not flipped takes ``rest``, or gives it if negative; FAR if none can.

    phi is concave, so that of those wide enough the one with the highest lower bound takes it cheapest, and the one with
    the lowest upper bound gives it cheapest.
    """
    if abs(rest) <= NOTHING:
        return 0.0
    at, height = np.int64(-1), -2.0
    for j in range(known.shape[1]):
        level = known[LOW, j] if rest > 0.0 else -known[HIGH, j]
        fits = (rest * known[WAY, j] >= 0.0) & (abs(rest) <= abs(known[WAY, j])) & ((flipped >> j) & 1 == 0)
        better = fits & (level > height)
        at, height = (j if better else at), (level if better else height)
    if at < 0:
        return FAR
    return phi(abs(height) + rest) - known[PHI_END, at] - slope_f * rest


@kernel
def _least_cost(known, f, root, sets, costs):
    """The least cost of any vertex of a row; FAR if there are too many sets to try."""
    slope_f, taken, need, best = root[LAMBDA], root[TAKEN], root[NEED], root[BEST]
    size = _collect_sets(known, best, need, known[LOW, f], known[HIGH, f], sets, costs[0], costs[1])
    if size > MOST_SETS:
        return FAR
    for s in range(size):
        cost, left = costs[0, s], taken + costs[1, s]
        for up in range(2):  # f is down or takes what is left, or it is up
            rest = known[LOW, f] + left - known[HIGH, f] if up else left
            away = root[BEFORE] if rest < 0.0 else (root[AFTER] if up else 0.0)
            if cost + abs(rest) * away < best:
                best = min(best, cost + _cost_of_rest(known, rest, sets[s] | (up << f), slope_f))
    return best


@kernel
def settle_rows_within(classes, roots, value, bound, known, sets, costs):
    """As `settle_rows`, with scratch memory."""
    for row in range(classes.shape[0]):
        root = roots[row]
        f = np.int64(root[AT])
        _describe(classes[row], f, root[LAMBDA], known)
        best = _least_cost(known, f, root, sets, costs)
        if best < FAR:
            value[row] = bound[row] = root[BASE] + best


def settle_rows(classes: Any, roots: Any, value: Any, bound: Any) -> None:
    """Lowest entropy of rows that one change left open, in bits; those with too many sets to try keep what they have.

    ``classes`` (rows, 5, classes) holds l, u, phi of both and slope; ``roots`` (rows, ROOT) what was found at the root.
    """
    known = np.empty((5, classes.shape[2]))
    settle_rows_within(classes, roots, value, bound, known, np.empty(MOST_SETS, np.int64), np.empty((2, MOST_SETS)))
