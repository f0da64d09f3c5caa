"""The root of the lower-entropy search for rows of many classes, in passes over the classes: no sort, no branch inside.

Least values are found on the bits of the numbers, which order as the non-negative numbers do: the compiler vectorises a
minimum of integers, but not one of floats that might not be numbers.
"""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.change import FAR, SLACK, certificate, change, changed, precedes, trades
from credalens.core.kernels.jit import bits_to_float, float_to_bits, inlined, kernel
from credalens.core.kernels.phi import phi

__all__ = ["break_at", "lower_root_rows"]

STEEP = 64.0  # bits; chords are steeper only for probabilities below 2^-60
PASSES = 64
FIRST = 4  # classes looked for one by one
RAISE = 2.0  # bits; makes every slope positive
NOBODY = np.int64(-1)


@kernel
def _slopes(lower, upper, phi_lower, phi_upper, slope):
    """The slope of every chord, FAR where there is none; what is left to give away, and the entropy of the lower bounds."""
    need, base = 1.0, 0.0
    for k in range(lower.size):
        width = upper[k] - lower[k]
        chord = (phi_upper[k] - phi_lower[k]) / width
        slope[k] = chord if width > 0.0 else FAR
        need -= lower[k]
        base += phi_lower[k]
    return need, base


@kernel
def _first_classes(lower, upper, phi_lower, phi_upper, slope, need):
    """The break class if it is one of the first in order of slope, else -1; mass and gain in entropy of those before it.

    Takes one class after the other, each by a pass that also finds the next: in peaked predictions the second is usually it.
    """
    far = float_to_bits(FAR)
    target, mass, gain = far, 0.0, 0.0
    for k in range(lower.size):
        one = float_to_bits(slope[k] + RAISE)
        target = one if one < target else target
    for _ in range(FIRST):
        count, at, following = 0, 0, far
        for k in range(lower.size):
            one = float_to_bits(slope[k] + RAISE)
            count += one == target
            at += k if one == target else 0  # a sum is vectorised
            one = one if one > target else far
            following = one if one < following else following
        if count != 1 or target == far:
            return NOBODY, 0.0, 0.0
        if mass + upper[at] - lower[at] >= need:
            return at, mass, gain
        mass += upper[at] - lower[at]
        gain += phi_upper[at] - phi_lower[at]
        target = following
    return NOBODY, 0.0, 0.0


@kernel
def _up_to(lower, upper, slope, pivot):
    """Widths in sum, and number, of the classes with a slope of at most ``pivot``."""
    mass, count = 0.0, 0
    for k in range(lower.size):
        first = slope[k] <= pivot
        mass += upper[k] - lower[k] if first else 0.0
        count += first
    return mass, count


@kernel
def _break_class(lower, upper, slope, need):
    """(break class f of the knapsack, mass of the classes before it): its slope is halved in until it is alone.

    Classes that cannot be told apart by slope get the same one and are filled in order.
    """
    below, above, mass, count = -2.0, 0.5 * FAR, 0.0, 0
    _, most = _up_to(lower, upper, slope, above)
    every = most
    for _ in range(PASSES):
        if most - count <= 1:
            break
        pivot = 0.5 * (below + above) if above <= STEEP else max(4.0, 4.0 * below)
        total, number = _up_to(lower, upper, slope, pivot)
        if total >= need or number == every:
            above, most = pivot, number
        else:
            below, mass, count = pivot, total, number
    at, done = NOBODY, False
    for k in range(lower.size):
        if below < slope[k] <= above:
            if at >= 0:
                slope[k] = slope[at]
                width = upper[at] - lower[at]
                done = done or mass + width >= need
                mass += 0.0 if done else width
            at = at if done else k
    return at, mass


@kernel
def _neighbours(lower, upper, slope, at):
    """Least differences of slope to the classes before and after f: those that dominance lets trade with it, then all."""
    far = float_to_bits(FAR)
    before, after, before_all, after_all = far, far, far, far
    low_f, high_f, slope_f = lower[at], upper[at], slope[at]
    for k in range(lower.size):
        away = slope[k] - slope_f
        other = (slope[k] < FAR) & (k != at)
        first = precedes(away, k, at)
        trade = other & trades(first, lower[k], upper[k], low_f, high_f)
        distance = float_to_bits(abs(away))
        one = distance if other & first else far
        before_all = one if one < before_all else before_all
        one = distance if trade & first else far
        before = one if one < before else before
        one = distance if other & (not first) else far
        after_all = one if one < after_all else after_all
        one = distance if trade & (not first) else far
        after = one if one < after else after
    return bits_to_float(before), bits_to_float(after), bits_to_float(before_all), bits_to_float(after_all)


@kernel
def _one_change(lower, upper, slope, at, f, near, alone, flips):
    """The least of what `change` finds over all classes: (d, next d, with f down, with f up)."""
    far = float_to_bits(FAR)
    least, second, if_down, if_up = far, far, far, far
    for k in range(lower.size):
        away = slope[k] - f[3]
        other = (slope[k] < FAR) & (k != at)
        first = precedes(away, k, at)
        alone[k], flips[k], down, up = change(lower[k], upper[k], away, other, first, f, near)
        one, two, three = float_to_bits(flips[k]), float_to_bits(down), float_to_bits(up)
        least = one if one < least else least
        if_down = two if two < if_down else if_down
        if_up = three if three < if_up else if_up
    count = 0
    for k in range(lower.size):
        one = float_to_bits(flips[k])
        count += one == least
        one = one if one > least else far
        second = one if one < second else second
    second = least if count > 1 else second
    return bits_to_float(least), bits_to_float(second), bits_to_float(if_down), bits_to_float(if_up)


@kernel
def _best_change(lower, upper, phi_lower, phi_upper, slope, at, f, alone, best):
    """The least cost of a vertex one class away; logarithms only where the bound lets hope."""
    for k in range(lower.size):
        if alone[k] < best:
            away = slope[k] - f[3]
            first = precedes(away, k, at)
            best = min(best, changed(lower[k], upper[k], phi_lower[k], phi_upper[k], away, first, f))
    return best


@kernel
def _gains(lower, upper, phi_lower, phi_upper, slope, at):
    """Sum of phi(u) - phi(l) over the classes before f."""
    total = 0.0
    for k in range(lower.size):
        first = precedes(slope[k] - slope[at], k, at)
        total += phi_upper[k] - phi_lower[k] if first else 0.0
    return total


@inlined
def break_at(lower, upper, phi_lower, phi_upper, slope):
    """Solve the knapsack: (break class f or -1 if nothing is to give away, its mass r, all mass given away, chord bound).

    Leaves the slopes in ``slope``.
    """
    need, base = _slopes(lower, upper, phi_lower, phi_upper, slope)
    if need <= SLACK:
        return NOBODY, 0.0, need, base
    at, mass, gain = _first_classes(lower, upper, phi_lower, phi_upper, slope, need)
    if at < 0:
        at, mass = _break_class(lower, upper, slope, need)
        if at < 0:
            return at, 0.0, need, base
        gain = _gains(lower, upper, phi_lower, phi_upper, slope, at)
    # Sums may be reordered, and what f takes or leaves come out just below nothing; FAR times that would be no bound.
    r = max(min(need - mass, upper[at] - lower[at]), 0.0)
    return at, r, need, base + gain + slope[at] * r


@kernel
def _root(lower, upper, phi_lower, phi_upper, slope, alone, flips, tolerance):
    """(entropy of the best vertex seen, certified lower bound) of one row, in bits."""
    at, r, _, chord = break_at(lower, upper, phi_lower, phi_upper, slope)
    if at < 0:
        return chord, chord
    slope_f, q = slope[at], max(upper[at] - lower[at] - r, 0.0)
    best = max(phi(lower[at] + r) - phi_lower[at] - slope_f * r, 0.0)
    near = _neighbours(lower, upper, slope, at)
    bound = min(best, r * near[1], q * near[0])
    if best > tolerance and bound < best - tolerance:
        f = (lower[at], upper[at], phi_lower[at], slope_f, r, q)
        least, second, down, up = _one_change(lower, upper, slope, at, f, near, alone, flips)
        best = max(_best_change(lower, upper, phi_lower, phi_upper, slope, at, f, alone, best), 0.0)
        bound = certificate(best, r, q, near[0], near[1], least, second, down, up)
    return chord + best, chord + bound


@kernel
def lower_root_rows(lower, upper, phi_lower, phi_upper, tolerance, entropy, bound):
    """An attained entropy and a certified lower bound for every row, in bits. They often meet within ``tolerance``."""
    slope, alone, flips = np.empty(lower.shape[1]), np.empty(lower.shape[1]), np.empty(lower.shape[1])
    for row in range(lower.shape[0]):
        entropy[row], bound[row] = _root(
            lower[row], upper[row], phi_lower[row], phi_upper[row], slope, alone, flips, tolerance
        )
