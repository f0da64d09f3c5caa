"""Upper entropy by water-filling: the level t with sum_k clip(t, l_k, u_k) = 1."""

from __future__ import annotations

from credalens.core.kernels.jit import kernel
from credalens.core.kernels.phi import phi

__all__ = ["upper_entropy_rows", "water_level"]


@kernel
def _split(lower, upper, t):
    """Sum and number of the lower bounds at or above t, then of the upper bounds at or below t."""
    low, high = 0.0, 0.0
    lows, highs = 0, 0
    for k in range(lower.size):
        above = lower[k] >= t
        low += lower[k] if above else 0.0
        lows += above
    for k in range(lower.size):  # two loops with two sums each are quicker than one with four
        below = (upper[k] <= t) & (lower[k] < t)
        high += upper[k] if below else 0.0
        highs += below
    return low, lows, high, highs


@kernel
def water_level(lower, upper):
    """The root t of s(t) = sum clip(t, l, u) - 1, by fixing variables.

    If s(t) > 0 the root is below t, so every class with l_k >= t stays at l_k; if s(t) < 0, every class with u_k <= t
    stays at u_k. The next t is the root for the classes not yet fixed. Each step fixes one class or more.
    """
    classes = lower.size
    low, lows, high, highs = 0.0, 0, 0.0, 0
    t = 1.0 / classes
    for _ in range(2 * classes + 2):
        a, at_lower, b, at_upper = _split(lower, upper, t)
        excess = a + b + (classes - at_lower - at_upper) * t - 1.0
        if excess > 0.0:
            low, lows = a, at_lower
        else:
            high, highs = b, at_upper
        free = classes - lows - highs
        if excess == 0.0 or free <= 0:
            break
        step = (1.0 - low - high) / free
        if step == t:
            break
        t = step
    return t


@kernel
def _upper_entropy_row(lower, upper, phi_lower, phi_upper):
    """(entropy in bits, level t) of the flattest distribution between the bounds. Uses one new logarithm."""
    t = water_level(lower, upper)
    entropy = 0.0
    moving = 0
    for k in range(lower.size):
        if lower[k] >= t:
            entropy += phi_lower[k]
        elif upper[k] <= t:
            entropy += phi_upper[k]
        else:
            moving += 1
    return entropy + moving * phi(t), t


@kernel
def _water_fill_row(lower, upper, t, out):
    """out_k = clip(t, l_k, u_k), the maximiser."""
    for k in range(lower.size):
        out[k] = min(max(t, lower[k]), upper[k])


@kernel
def upper_entropy_rows(lower, upper, phi_lower, phi_upper, entropy, distribution):
    """Upper entropy of every row and, if ``distribution`` has rows, the maximiser."""
    for row in range(lower.shape[0]):
        entropy[row], t = _upper_entropy_row(lower[row], upper[row], phi_lower[row], phi_upper[row])
        if distribution.shape[0] > 0:
            _water_fill_row(lower[row], upper[row], t, distribution[row])
