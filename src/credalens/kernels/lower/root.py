"""The root of the lower-entropy search: the knapsack, and what it costs to leave its vertex. Most searches end here.

Notation and facts as in ``solve.py``; all of it on the open classes (``open_classes.py``), in whole vectors and without
branches. The knapsack fills the classes in order of slope; f is its break class, lambda its slope, r = x - l_f the mass it
takes, q = u_f - x what it leaves. Against the chord bound a vertex costs

    sum over flipped classes of d_k = w_k |s_k - lambda|,  plus  g_j(y) = phi(y) - chord with slope lambda

for the one class j at a value y between its bounds; no term is negative. So a vertex that costs less than the best one
seen flips a set of classes whose d_k sum to less. The knapsack's vertex costs g_f(x). Any other

- has j = f, and then flips one class (value known exactly) or two or more (cost at least the two least d), or
- has f down (or up): then another class takes r (gives q) alone, value known exactly; or some class i is flipped and
  what that leaves of r (of q) is moved at the least slope difference there is.

If all of these cost as much as the best value seen, the row is done: nineteen of twenty rows of real predictions with ten
classes.
"""

from collections import namedtuple

import numpy as np

from credalens.kernels.simd.jit import NOBODY, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    choose,
    count,
    everywhere,
    first_of,
    larger,
    least_of,
    load,
    positions,
    smaller,
    store,
)

FAR = 1e300  # a slope no class has
NARROW = 2.0**-16  # widths over upper bounds: the quotient is off by 1e-10 there, and its limit by 6e-11
ONE_BIT = 1.0 / np.log(2.0)
SLACK = 1e-15  # mass below this is rounding
STEEP = 64.0  # bits; chords are steeper only for probabilities below 2^-60
PASSES = 64
FIRST = 4  # classes looked for one by one

BreakClass = namedtuple("BreakClass", "low high phi_low slope taken left")
"""Class f: l, u, phi(l), lambda, r and q."""

NearestSlopes = namedtuple("NearestSlopes", "before after before_all after_all")
"""Least differences of slope to the classes before and after f: of those that may trade with f, then of all."""

FlipBounds = namedtuple("FlipBounds", "alone flipped with_f_down with_f_up")
"""Bounds on the cost of vertices that differ in a class, FAR where impossible: it alone differs; it is flipped; f is
down and it is flipped; f is up and it is flipped."""


@inlined
def is_narrow(low, high):
    """Whether the quotient of differences is no slope of phi's chord, but rounding: of a number or a vector."""
    return high - low <= NARROW * high


@inlined
def chord_slope(low, high, phi_low, phi_high):
    """The slope of phi's chord over [low, high], where low < high: of a number or a vector.

    Between bounds that are close together it is (phi(l) + phi(u)) / (l + u) - 1 / ln 2.
    """
    quotient, limit = (phi_high - phi_low) / (high - low), (phi_low + phi_high) / (low + high) - ONE_BIT
    return choose(is_narrow(low, high), limit, quotient)


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
def _chord_slopes(m, classes, threshold):
    """The slope of every chord, FAR where the class has no width or is below the threshold; returns the least of them."""
    least = everywhere(FAR)
    for k in range(0, m, WIDTH):
        bottom, top = load(classes.low, k), load(classes.high, k)
        phi_bottom, phi_top = load(classes.phi_low, k), load(classes.phi_high, k)
        chord = (phi_top - phi_bottom) / (top - bottom)
        if bits_of(is_narrow(bottom, top)) != 0:
            chord = chord_slope(bottom, top, phi_bottom, phi_top)
        chord = choose((top > bottom) & (top >= threshold), chord, FAR)
        store(classes.slope, k, chord)
        least = smaller(chord, least)
    return least_of(least)


@inlined
def _first_classes(m, classes, least, need):
    """The break class if it is one of the first in order of slope, else -1; mass and gain in entropy of those before it.

    Takes one class after the other, each by a pass that also finds the next: in peaked predictions the second is usually it.
    """
    target, mass, gain = least, 0.0, 0.0
    for _ in range(FIRST):
        number, at, following = 0, NOBODY, everywhere(FAR)
        for k in range(0, m, WIDTH):
            slope = load(classes.slope, k)
            bits = bits_of(slope == target)
            number += count(bits)
            at = k + first_of(bits) if bits != 0 else at
            following = smaller(choose(slope > target, slope, FAR), following)
        if number != 1 or target >= FAR:
            break
        width = classes.high[at] - classes.low[at]
        if mass + width >= need:
            return at, mass, gain
        mass += width
        gain += classes.phi_high[at] - classes.phi_low[at]
        target = least_of(following)
    return NOBODY, 0.0, 0.0


@kernel
def _up_to(m, low, high, slope, pivot):
    """Widths in sum, and number, of the classes with a slope of at most ``pivot``."""
    mass, number = 0.0, 0
    for k in range(m):
        first = slope[k] <= pivot
        mass += high[k] - low[k] if first else 0.0
        number += first
    return mass, number


@kernel
def _break_between(m, classes, need):
    """(break class f of the knapsack, mass of the classes before it): its slope is halved in until it is alone.

    Classes that cannot be told apart by slope get the same one and are filled in order.
    """
    low, high, slope = classes.low, classes.high, classes.slope
    below, above, mass, number = -2.0, 0.5 * FAR, 0.0, 0
    _, most = _up_to(m, low, high, slope, above)
    every = most
    for _ in range(PASSES):
        if most - number <= 1:
            break
        pivot = 0.5 * (below + above) if above <= STEEP else max(4.0, 4.0 * below)
        total, first = _up_to(m, low, high, slope, pivot)
        if total >= need or first == every:
            above, most = pivot, first
        else:
            below, mass, number = pivot, total, first
    at, done = NOBODY, False
    for k in range(m):
        if below < slope[k] <= above:
            if at >= 0:
                slope[k] = slope[at]
                width = high[at] - low[at]
                done = done or mass + width >= need
                mass += 0.0 if done else width
            at = at if done else k
    return at, mass


@inlined
def break_class(m, classes, threshold, need):
    """Solve the knapsack: (break class f or -1 if there is none, its mass r, what the chord bound gains over the lower bounds).

    Leaves the slopes in ``classes``.
    """
    least = _chord_slopes(m, classes, threshold)
    at, mass, gain = _first_classes(m, classes, least, need)
    if at < 0:
        at, mass = _break_between(m, classes, need)
        if at < 0:
            return at, 0.0, 0.0
        for k in range(m):
            first = precedes(classes.slope[k] - classes.slope[at], k, at)
            gain += classes.phi_high[k] - classes.phi_low[k] if first else 0.0
    # Sums may be reordered, and what f takes or leaves come out just below nothing; FAR times that would be no bound.
    r = max(min(need - mass, classes.high[at] - classes.low[at]), 0.0)
    return at, r, gain + classes.slope[at] * r


@inlined
def gap_of(classes, at, r):
    """What the knapsack's vertex costs over the chord bound."""
    return max(phi(classes.low[at] + r) - classes.phi_low[at] - classes.slope[at] * r, 0.0)


@inlined
def _nearest_slopes(m, classes, at):
    """`NearestSlopes` of class f at position ``at``."""
    before, after, before_all, after_all = everywhere(FAR), everywhere(FAR), everywhere(FAR), everywhere(FAR)
    low_f, high_f, slope_f = classes.low[at], classes.high[at], classes.slope[at]
    for k in range(0, m, WIDTH):
        slope, place = load(classes.slope, k), positions() + k
        away = slope - slope_f
        other = (slope < FAR) & (place != at)
        first = precedes(away, place, at)
        trade = trades(first, load(classes.low, k), load(classes.high, k), low_f, high_f)
        distance = choose(other, abs(away), FAR)
        ahead, behind = choose(first, distance, FAR), choose(first, FAR, distance)
        before_all, after_all = smaller(ahead, before_all), smaller(behind, after_all)
        before, after = smaller(choose(trade, ahead, FAR), before), smaller(choose(trade, behind, FAR), after)
    return NearestSlopes(least_of(before), least_of(after), least_of(before_all), least_of(after_all))


@inlined
def _one_flip(m, classes, at, f, near, best):
    """(cost of the best vertex one flip away, certified lower bound of every vertex's cost).

    Logarithms only where the bound lets hope.
    """
    least, second, if_down, if_up = everywhere(FAR), everywhere(FAR), everywhere(FAR), everywhere(FAR)
    for k in range(0, m, WIDTH):
        bottom, top, slope, place = load(classes.low, k), load(classes.high, k), load(classes.slope, k), positions() + k
        away = slope - f.slope
        first = precedes(away, place, at)
        bounds = flip_bounds(bottom, top, away, (slope < FAR) & (place != at), first, f, near)
        second = smaller(choose(bounds.flipped < least, least, bounds.flipped), second)
        least = smaller(bounds.flipped, least)
        if_down, if_up = smaller(bounds.with_f_down, if_down), smaller(bounds.with_f_up, if_up)
        hope = bounds.alone < best
        if bits_of(hope) != 0:
            phi_bottom, phi_top = load(classes.phi_low, k), load(classes.phi_high, k)
            cost = flip_cost(bottom, top, phi_bottom, phi_top, away, first, f)
            best = min(best, least_of(choose(hope, cost, FAR)))
    cheapest = least_of(least)
    same = least == cheapest
    following = least_of(smaller(second, choose(same, FAR, least)))
    following = cheapest if count(bits_of(same)) > 1 else following
    best = max(best, 0.0)
    down, up = f.taken * near.after, f.left * near.before
    two_flips = larger(cheapest + following, smaller(down, up))
    at_bound = smaller(larger(down, least_of(if_down)), larger(up, least_of(if_up)))
    return best, smaller(smaller(best, two_flips), at_bound)


@inlined
def root(m, classes, at, r, tolerance):
    """(cost of the best vertex seen, certified lower bound of every vertex's cost), both over the chord bound, in bits."""
    low, high = classes.low[at], classes.high[at]
    f = BreakClass(low, high, classes.phi_low[at], classes.slope[at], r, max(high - low - r, 0.0))
    best = gap_of(classes, at, r)
    near = _nearest_slopes(m, classes, at)
    bound = smaller(best, smaller(f.taken * near.after, f.left * near.before))
    if best > tolerance and bound < best - tolerance:
        best, bound = _one_flip(m, classes, at, f, near, best)
    return best, bound
