"""What it costs to leave the vertex that the chord bound finds: the test that ends most searches before they begin.

Notation and facts as in ``solve.py``. The knapsack fills the classes in order of slope; f is its break class, lambda its
slope, r = x - l_f the mass it takes, q = u_f - x what it leaves. Against the chord bound a vertex costs

    sum over flipped classes of d_k = w_k |s_k - lambda|,  plus  g_j(y) = phi(y) - chord with slope lambda

for the one class j at a value y between its bounds; no term is negative. So a vertex that costs less than the best one
seen flips a set of classes whose d_k sum to less. The knapsack's vertex costs g_f(x). Any other

- has j = f, and then flips one class (value known exactly) or two or more (cost at least the two least d), or
- has f down (or up): then another class takes r (gives q) alone, value known exactly; or some class i is flipped and
  what that leaves of r (of q) is moved at the least slope difference there is.

If all of these cost as much as the best value seen, the row is done: nineteen of twenty rows of real predictions with ten
classes. Nothing here branches, and everything works on vectors of classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from credalens.kernels.simd.jit import inlined
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import choose, larger, smaller

FAR = 1e300  # a slope no class has
NARROW = 2.0**-16  # widths over upper bounds: the quotient is off by 1e-10 there, and its limit by 6e-11
ONE_BIT = 1.0 / np.log(2.0)
SLACK = 1e-15  # mass below this is rounding


class BreakClass(NamedTuple):
    """Class f: l, u, phi(l), lambda, r and q."""

    low: Any
    high: Any
    phi_low: Any
    slope: Any
    taken: Any
    left: Any


class NearestSlopes(NamedTuple):
    """Least differences of slope to the classes before and after f: of those that may trade with f, then of all."""

    before: Any
    after: Any
    before_all: Any
    after_all: Any


class FlipBounds(NamedTuple):
    """Bounds on the cost of vertices that differ in a class, FAR where impossible: it alone differs; it is flipped; f is
    down and it is flipped; f is up and it is flipped."""

    alone: Any
    flipped: Any
    with_f_down: Any
    with_f_up: Any


@inlined
def is_narrow(low, high):
    """Whether the quotient of differences is no slope of phi's chord, but rounding: of a number or a vector."""
    return high - low <= NARROW * high


@inlined
def narrow_slope(low, high, phi_low, phi_high):
    """The slope of phi's chord between bounds that are close together: (phi(l) + phi(u)) / (l + u) - 1 / ln 2."""
    return (phi_low + phi_high) / (low + high) - ONE_BIT


@inlined
def chord_slope(low, high, phi_low, phi_high):
    """The slope of phi's chord over [low, high], where low < high: of a number or a vector."""
    quotient = (phi_high - phi_low) / (high - low)
    return choose(is_narrow(low, high), narrow_slope(low, high, phi_low, phi_high), quotient)


@inlined
def precedes(away, k, at):
    """Whether class k, whose slope is ``away`` from that of class f at position ``at``, stands before f; ties by position."""
    return (away < 0.0) | ((away == 0.0) & (k < at))


@inlined
def trades(first, bottom, top, low_f, high_f):
    """Whether dominance (fact c) lets a class trade mass with f; ``first``: it stands before f in order of slope."""
    below = (bottom < low_f) | (top < high_f)
    above = (bottom > low_f) | (top > high_f)
    return choose(first, below, above)


@inlined
def flip_bounds(bottom, top, away, other, first, f, near):
    """`FlipBounds` of a class. ``away`` is its slope less lambda, ``other`` whether it has a width and is not f."""
    w = top - bottom
    trade = other & trades(first, bottom, top, f.low, f.high)
    cost = w * abs(away)
    y = f.low + f.taken + choose(first, w, -w)
    move = choose(first, f.left, f.taken)
    alone = choose((y >= f.low) & (y <= f.high), cost, FAR)
    alone = smaller(alone, choose(move <= w, move * abs(away), FAR))

    # Where f is at a bound and this class flipped, other classes take or give what that leaves.
    short = move - w
    closest = choose(first, near.before, near.after)
    back = choose(first, near.after_all, near.before_all)
    rest = cost + abs(short) * choose(short > 0.0, closest, back)
    rest = choose(trade, rest, FAR)
    far = cost + choose(first, (f.taken + w) * near.after, (f.left + w) * near.before)
    far = choose(other, far, FAR)
    return FlipBounds(
        choose(trade, alone, FAR), choose(trade, cost, FAR), choose(first, far, rest), choose(first, rest, far)
    )


@inlined
def flip_cost(bottom, top, phi_bottom, phi_top, away, first, f):
    """The least cost of a vertex in which only this class differs, which may trade with f."""
    w = top - bottom
    # f stays between its bounds and this class changes sides.
    y = f.low + f.taken + choose(first, w, -w)
    value = w * abs(away) + phi(y) - f.phi_low - f.slope * (y - f.low)
    value = choose((y >= f.low) & (y <= f.high), value, FAR)
    # f goes to a bound and this class alone takes r or gives q.
    move = choose(first, -f.left, f.taken)
    end, phi_end = choose(first, top, bottom), choose(first, phi_top, phi_bottom)
    takes = phi(end + move) - phi_end - f.slope * move
    return smaller(value, choose(abs(move) <= w, takes, FAR))


@inlined
def certificate(best, f, near, least, second, if_down, if_up):
    """A lower bound of what any vertex costs, given the best cost seen and the least `FlipBounds` of all classes:
    of one flip and of the next, with f down, with f up."""
    down, up = f.taken * near.after, f.left * near.before
    flips = larger(least + second, smaller(down, up))
    return smaller(smaller(best, flips), smaller(larger(down, if_down), larger(up, if_up)))
