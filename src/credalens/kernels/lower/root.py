"""The root of the lower-entropy search for a row of many classes: the knapsack, and what one change of it can gain.

All of it on the open classes (``threshold.py``), in whole vectors; those that fill up the last one have no width.
"""

from __future__ import annotations

from credalens.kernels.lower.single_flip import FAR, certificate, change, changed, precedes, smaller, trades
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
    store,
)

__all__ = ["break_class", "gap_of", "root"]

STEEP = 64.0  # bits; chords are steeper only for probabilities below 2^-60
PASSES = 64
FIRST = 4  # classes looked for one by one


@inlined
def _slopes(m, low, high, phi_low, phi_high, slope):
    """The slope of every chord, FAR where there is none; returns the least of them."""
    least = everywhere(FAR)
    for k in range(0, m, WIDTH):
        width = load(high, k) - load(low, k)
        chord = choose(width > 0.0, (load(phi_high, k) - load(phi_low, k)) / width, FAR)
        store(slope, k, chord)
        least = smaller(chord, least)
    return least_of(least)


@inlined
def _first_classes(m, low, high, phi_low, phi_high, slope, least, need):
    """The break class if it is one of the first in order of slope, else -1; mass and gain in entropy of those before it.

    Takes one class after the other, each by a pass that also finds the next: in peaked predictions the second is usually it.
    """
    target, mass, gain = least, 0.0, 0.0
    for _ in range(FIRST):
        number, at, following = 0, NOBODY, everywhere(FAR)
        for k in range(0, m, WIDTH):
            one = load(slope, k)
            bits = bits_of(one == target)
            number += count(bits)
            at = k + first_of(bits) if bits != 0 else at
            following = smaller(choose(one > target, one, FAR), following)
        if number != 1:
            return NOBODY, 0.0, 0.0
        if mass + high[at] - low[at] >= need:
            return at, mass, gain
        mass += high[at] - low[at]
        gain += phi_high[at] - phi_low[at]
        target = least_of(following)
        if target >= FAR:
            return NOBODY, 0.0, 0.0
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
def _break_between(m, low, high, slope, need):
    """(break class f of the knapsack, mass of the classes before it): its slope is halved in until it is alone.

    Classes that cannot be told apart by slope get the same one and are filled in order.
    """
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
def _gains(m, phi_low, phi_high, slope, at):
    """Sum of phi(u) - phi(l) over the classes before f."""
    total = 0.0
    for k in range(m):
        first = precedes(slope[k] - slope[at], k, at)
        total += phi_high[k] - phi_low[k] if first else 0.0
    return total


@inlined
def break_class(m, known, need):
    """Solve the knapsack: (break class f or -1 if there is none, its mass r, what the chord bound gains over the lower bounds).

    Leaves the slopes in the workspace.
    """
    low, high, phi_low, phi_high, slope, _ = known
    least = _slopes(m, low, high, phi_low, phi_high, slope)
    at, mass, gain = _first_classes(m, low, high, phi_low, phi_high, slope, least, need)
    if at < 0:
        at, mass = _break_between(m, low, high, slope, need)
        if at < 0:
            return at, 0.0, 0.0
        gain = _gains(m, phi_low, phi_high, slope, at)
    # Sums may be reordered, and what f takes or leaves come out just below nothing; FAR times that would be no bound.
    r = max(min(need - mass, high[at] - low[at]), 0.0)
    return at, r, gain + slope[at] * r


@inlined
def gap_of(known, at, r):
    """What the knapsack's vertex costs over the chord bound."""
    low, _, phi_low, _, slope, _ = known
    return max(phi(low[at] + r) - phi_low[at] - slope[at] * r, 0.0)


@inlined
def _neighbours(m, low, high, slope, at):
    """Least differences of slope to the classes before and after f: those that dominance lets trade with it, then all."""
    before, after, before_all, after_all = everywhere(FAR), everywhere(FAR), everywhere(FAR), everywhere(FAR)
    for k in range(0, m, WIDTH):
        one, place = load(slope, k), positions() + k
        away = one - slope[at]
        other = (one < FAR) & (place != at)
        first = precedes(away, place, at)
        trade = trades(first, load(low, k), load(high, k), low[at], high[at])
        distance = choose(other, abs(away), FAR)
        ahead, behind = choose(first, distance, FAR), choose(first, FAR, distance)
        before_all, after_all = smaller(ahead, before_all), smaller(behind, after_all)
        before, after = smaller(choose(trade, ahead, FAR), before), smaller(choose(trade, behind, FAR), after)
    return least_of(before), least_of(after), least_of(before_all), least_of(after_all)


@inlined
def _one_change(m, known, at, f, near, best):
    """The best cost of a vertex one class away, and the least of what `change` finds: d, the next d, with f down, with f up.

    Logarithms only where the bound lets hope.
    """
    low, high, phi_low, phi_high, slope, _ = known
    least, second, if_down, if_up = everywhere(FAR), everywhere(FAR), everywhere(FAR), everywhere(FAR)
    for k in range(0, m, WIDTH):
        bottom, top, one, place = load(low, k), load(high, k), load(slope, k), positions() + k
        away = one - f[3]
        other = (one < FAR) & (place != at)
        first = precedes(away, place, at)
        alone, flip, down, up = change(bottom, top, away, other, first, f, near)
        second = smaller(choose(flip < least, least, flip), second)
        least, if_down, if_up = smaller(flip, least), smaller(down, if_down), smaller(up, if_up)
        hope = alone < best
        if bits_of(hope) != 0:
            value = changed(bottom, top, load(phi_low, k), load(phi_high, k), away, first, f)
            best = min(best, least_of(choose(hope, value, FAR)))
    one = least_of(least)
    same = least == one
    after = least_of(smaller(second, choose(same, FAR, least)))
    after = one if count(bits_of(same)) > 1 else after
    return max(best, 0.0), one, after, least_of(if_down), least_of(if_up)


@inlined
def root(m, known, at, r, tolerance):
    """(cost of the best vertex seen, certified lower bound of every vertex's cost), both over the chord bound, in bits."""
    low, high, phi_low, _, slope, _ = known
    q, best = max(high[at] - low[at] - r, 0.0), gap_of(known, at, r)
    near = _neighbours(m, low, high, slope, at)
    bound = min(best, r * near[1], q * near[0])
    if best > tolerance and bound < best - tolerance:
        f = (low[at], high[at], phi_low[at], slope[at], r, q)
        best, least, second, down, up = _one_change(m, known, at, f, near, best)
        bound = certificate(best, r, q, near[0], near[1], least, second, down, up)
    return best, bound
