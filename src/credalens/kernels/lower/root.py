"""The root of the lower-entropy search: the knapsack, and what one change of it can gain.

All of it on the open classes (``open_classes.py``), in whole vectors.
"""

from __future__ import annotations

from credalens.kernels.lower.single_flip import (
    FAR,
    BreakClass,
    NearestSlopes,
    certificate,
    flip_bounds,
    flip_cost,
    is_narrow,
    narrow_slope,
    precedes,
    trades,
)
from credalens.kernels.simd.jit import NOBODY, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    choose,
    count,
    everywhere,
    first_of,
    least_of,
    load,
    positions,
    smaller,
    store,
)

STEEP = 64.0  # bits; chords are steeper only for probabilities below 2^-60
PASSES = 64
FIRST = 4  # classes looked for one by one


@inlined
def _chord_slopes(m, classes, threshold):
    """The slope of every chord, FAR where the class has no width or is below the threshold; returns the least of them."""
    least = everywhere(FAR)
    for k in range(0, m, WIDTH):
        bottom, top = load(classes.low, k), load(classes.high, k)
        phi_bottom, phi_top = load(classes.phi_low, k), load(classes.phi_high, k)
        chord, narrow = (phi_top - phi_bottom) / (top - bottom), is_narrow(bottom, top)
        if bits_of(narrow) != 0:
            chord = choose(narrow, narrow_slope(bottom, top, phi_bottom, phi_top), chord)
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


@kernel
def _gains(m, classes, at):
    """Sum of phi(u) - phi(l) over the classes before f."""
    total = 0.0
    for k in range(m):
        first = precedes(classes.slope[k] - classes.slope[at], k, at)
        total += classes.phi_high[k] - classes.phi_low[k] if first else 0.0
    return total


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
        gain = _gains(m, classes, at)
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
    return best, certificate(best, f, near, cheapest, following, least_of(if_down), least_of(if_up))


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
