"""Upper entropy by water-filling: the level t with sum_k clip(t, l_k, u_k) = 1."""

from __future__ import annotations

from typing import Any

from credalens.kernels.rows import read_row, row_workspace
from credalens.kernels.simd.jit import NONE, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import WIDTH, bits_of, choose, count, everywhere, load, sum_of

__all__ = [
    "entropy_at",
    "no_split",
    "split_at",
    "split_more",
    "split_of",
    "upper_entropy_rows",
    "water_fill_rows",
    "water_level",
]


@inlined
def no_split():
    """What `split_more` begins with."""
    return everywhere(0.0), NONE, everywhere(0.0), NONE


@inlined
def split_more(bottom, top, t, split):
    """Add a vector of classes to lanes and numbers of lower bounds at or above t, and of upper bounds below t."""
    lows, at_lower, highs, at_upper = split
    above, below = bottom >= t, top < t
    return (
        lows + choose(above, bottom, 0.0), at_lower + count(bits_of(above)),
        highs + choose(below, top, 0.0), at_upper + count(bits_of(below)),
    )  # fmt: skip


@inlined
def split_of(split):
    """Sum and number of the lower bounds at or above t, then of the upper bounds below t."""
    lows, at_lower, highs, at_upper = split
    return sum_of(lows), at_lower, sum_of(highs), at_upper


@inlined
def split_at(low, high, t):
    """The same for a whole row."""
    split = no_split()
    for k in range(0, low.size, WIDTH):
        split = split_more(load(low, k), load(high, k), t, split)
    return split_of(split)


@inlined
def water_level(low, high, classes, first):
    """The root t of s(t) = sum clip(t, l, u) - 1, by fixing variables; ``first`` is `split_at` the level 1 / C.

    If s(t) > 0 the root is below t, so every class with l_k >= t stays at l_k; if s(t) < 0, every class with u_k < t
    stays at u_k. The next t is the root for the classes not yet fixed. Each step fixes one class or more. What fills up the
    last vector stays at zero.
    """
    every = low.size
    fixed_low, lows, fixed_high, highs = 0.0, 0, 0.0, every - classes
    t = 1.0 / classes
    a, at_lower, b, at_upper = first
    for _ in range(2 * classes + 2):
        excess = a + b + (every - at_lower - at_upper) * t - 1.0
        if excess > 0.0:
            fixed_low, lows = a, at_lower
        else:
            fixed_high, highs = b, at_upper
        free = every - lows - highs
        if excess == 0.0 or free <= 0:
            break
        step = (1.0 - fixed_low - fixed_high) / free
        if step == t:
            break
        t = step
        a, at_lower, b, at_upper = split_at(low, high, t)
    return t


@inlined
def entropy_at(low, high, phi_low, phi_high, t):
    """What a vector of classes adds to the entropy at level t, without those between their bounds, and which these are."""
    above, below = low >= t, high <= t
    return choose(above, phi_low, choose(below, phi_high, 0.0)), above | below


@kernel
def water_fill_rows(lower, upper, entropy, distribution, scratch):
    """As `upper_entropy_rows`, with a `row_workspace`."""
    classes, low, high = lower.shape[1], scratch[0], scratch[1]
    for row in range(lower.shape[0]):
        read_row(lower[row], upper[row], low, high)
        t = water_level(low, high, classes, split_at(low, high, 1.0 / classes))
        total, moving = everywhere(0.0), low.size
        for k in range(0, low.size, WIDTH):
            bottom, top = load(low, k), load(high, k)
            part, fixed = entropy_at(bottom, top, phi(bottom), phi(top), t)
            total = total + part
            moving -= count(bits_of(fixed))
        entropy[row] = sum_of(total) + moving * phi(t)
        if distribution.shape[0] > 0:
            for k in range(classes):
                distribution[row, k] = min(max(t, low[k]), high[k])


def upper_entropy_rows(lower: Any, upper: Any, entropy: Any, distribution: Any) -> None:
    """Upper entropy of every row in bits and, if ``distribution`` has rows, the maximiser."""
    water_fill_rows(lower, upper, entropy, distribution, row_workspace(lower.shape[1]))
