"""Upper entropy by water-filling: the level t with sum_k clip(t, l_k, u_k) = 1."""

from collections import namedtuple
from typing import Any

from credalens.kernels.buffers import read_row, row_of, row_workspace
from credalens.kernels.simd.jit import NONE, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    choose,
    count,
    everywhere,
    larger,
    least_of,
    load,
    most_of,
    smaller,
    sum_of,
)

BEYOND = 2.0  # a bound above all levels

Split = namedtuple("Split", "low_sum low_count high_sum high_count under over")
"""The bounds of a row at a level t: sum and number of the lower ones at or above it, sum and number of the upper ones
below it, and the nearest bounds on either side of t.

Sums and nearest bounds may also be vectors, one number for every lane.
"""


@inlined
def no_split():
    """What `split_more` begins with."""
    return Split(everywhere(0.0), NONE, everywhere(0.0), NONE, everywhere(0.0), everywhere(BEYOND))


@inlined
def split_more(bottom, top, t, split):
    """Add a vector of classes to a split in lanes."""
    above, below = bottom >= t, top < t
    return Split(
        split.low_sum + choose(above, bottom, 0.0),
        split.low_count + count(bits_of(above)),
        split.high_sum + choose(below, top, 0.0),
        split.high_count + count(bits_of(below)),
        larger(choose(below, top, choose(above, 0.0, bottom)), split.under),
        smaller(choose(above, bottom, choose(below, BEYOND, top)), split.over),
    )


@inlined
def split_of(split):
    """The split of the row from that of the lanes."""
    return Split(
        sum_of(split.low_sum),
        split.low_count,
        sum_of(split.high_sum),
        split.high_count,
        most_of(split.under),
        least_of(split.over),
    )


@inlined
def split_at(low, high, t):
    """The split of a whole row at level t."""
    split = no_split()
    for k in range(0, low.size, WIDTH):
        split = split_more(load(low, k), load(high, k), t, split)
    return split_of(split)


@inlined
def water_level(low, high, classes, first):
    """The root t of s(t) = sum clip(t, l, u) - 1; ``first`` is `split_at` the level 1 / C.

    s is linear between neighbouring bounds. If the root for the piece at t lies in this piece, that is it. If not, it is the
    next t, unless it leaves the range that the signs of s allow: then the next t is the root with all classes fixed whose
    side is known. If s(t) > 0 the root is below t, so that every class with l_k >= t stays at l_k; if s(t) < 0, every class
    with u_k < t stays at u_k. No piece is looked at twice. What fills up the last vector stays at zero.
    """
    every = low.size
    fixed_low, lows, fixed_high, highs = 0.0, NONE, 0.0, NONE + (every - classes)
    t, least, most = 1.0 / classes, 0.0, 1.0
    split = first
    for _ in range(2 * classes + 2):
        inside = every - split.low_count - split.high_count
        excess = split.low_sum + split.high_sum + inside * t - 1.0
        if excess > 0.0:
            most, fixed_low, lows = t, split.low_sum, split.low_count
        else:
            least, fixed_high, highs = t, split.high_sum, split.high_count
        if excess == 0.0 or lows + highs >= every:
            break
        step = (1.0 - split.low_sum - split.high_sum) / inside
        if split.under <= step <= split.over:
            return step
        if not least < step < most:  # also if no class is inside its bounds
            step = (1.0 - fixed_low - fixed_high) / (every - lows - highs)
        if step == t:
            break
        t = step
        split = split_at(low, high, t)
    return t


@inlined
def entropy_at(low, high, phi_low, phi_high, t):
    """What a vector of classes adds to the entropy at level t, without those between their bounds, and which these are."""
    above, below = low >= t, high <= t
    return choose(above, phi_low, choose(below, phi_high, 0.0)), above | below


@kernel
def water_fill_rows(lower, upper, entropy, distribution, workspace):
    """As `upper_entropy_rows`, with a `row_workspace`."""
    classes, row = lower.shape[1], row_of(workspace)
    low, high = row.low, row.high
    for i in range(lower.shape[0]):
        read_row(lower[i], upper[i], row)
        t = water_level(low, high, classes, split_at(low, high, 1.0 / classes))
        total, moving = everywhere(0.0), low.size
        for k in range(0, low.size, WIDTH):
            bottom, top = load(low, k), load(high, k)
            part, fixed = entropy_at(bottom, top, phi(bottom), phi(top), t)
            total = total + part
            moving -= count(bits_of(fixed))
        entropy[i] = sum_of(total) + moving * phi(t)
        if distribution.shape[0] > 0:
            for k in range(classes):
                distribution[i, k] = min(max(t, low[k]), high[k])


def upper_entropy_rows(lower: Any, upper: Any, entropy: Any, distribution: Any) -> None:
    """Upper entropy of every row in bits and, if ``distribution`` has rows, the maximiser."""
    water_fill_rows(lower, upper, entropy, distribution, row_workspace(lower.shape[1]))
