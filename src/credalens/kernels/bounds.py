"""Members in, bounds out: the one pass that reads, validates, renormalises and folds member predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from credalens.kernels.lower.single_flip import larger, smaller
from credalens.kernels.rows import read_row, row_workspace
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    fetch,
    fetch_to_write,
    load,
    load_some,
    positions,
    store,
    store_some,
    sum_of,
)
from credalens.kernels.upper import no_split, split_more, split_of

__all__ = ["alpha_of", "bounds_rows", "fold_row", "fold_rows", "intersect_more", "intersect_rows", "intersection_rows"]

EXACT = 1e-14  # a row this close to one is left as it is: dividing would only move the last digits
NARROW = 1e-15  # mass; widths that sum to less are none


@inlined
def _scale(p, whole, rest, tolerance):
    """1 / sum of the row, or NaN if the sum is not one; that nothing is negative is for the lower bounds to tell."""
    total = load_some(p, whole, rest)
    for k in range(0, whole, WIDTH):
        total = total + load(p, k)
    found = sum_of(total)
    if not abs(found - 1.0) <= tolerance:
        return np.nan
    return 1.0 if abs(found - 1.0) <= EXACT else 1.0 / found


@inlined
def _folded(value, low, high, total):
    return smaller(value, low), larger(value, high), total + value


@inlined
def fold_row(members, row, tolerance, scales, low, high, lower, upper, mean):
    """Lower, upper and mean probability of one row, the bounds also to its scratch memory (see ``rows.py``).

    Returns the sums of the lower bounds and of the widths, NaN if a member's row is not a distribution, and the bounds split
    at the level 1 / C, from which `water_level` starts.
    """
    number, _, classes = members.shape
    whole, share = classes - classes % WIDTH, 1.0 / number
    rest = positions() < classes - whole
    for n in range(number):
        scales[n] = _scale(members[n, row], whole, rest, tolerance)
        if not scales[n] > 0.0:
            return np.nan, np.nan, split_of(no_split())
    bottom = load_some(members[0, row], whole, rest) * scales[0]
    top, total = bottom, bottom
    for n in range(1, number):
        bottom, top, total = _folded(load_some(members[n, row], whole, rest) * scales[n], bottom, top, total)
    store(low, whole, bottom)
    store(high, whole, top)
    store_some(lower, whole, bottom, rest)
    store_some(upper, whole, top, rest)
    store_some(mean, whole, total * share, rest)
    below, width, least = bottom, top - bottom, bottom
    level = 1.0 / classes
    first = split_more(bottom, top, level, no_split())
    for k in range(0, whole, WIDTH):
        bottom = load(members[0, row], k) * scales[0]
        fetch(members[0, row], k + classes)
        top, total = bottom, bottom
        for n in range(1, number):
            bottom, top, total = _folded(load(members[n, row], k) * scales[n], bottom, top, total)
            fetch(members[n, row], k + classes)
        store(low, k, bottom)
        store(high, k, top)
        store(lower, k, bottom)
        store(upper, k, top)
        store(mean, k, total * share)
        below, width, least = below + bottom, width + (top - bottom), smaller(bottom, least)
        first = split_more(bottom, top, level, first)
    if bits_of(least < 0.0) != 0:
        return np.nan, np.nan, split_of(first)
    return sum_of(below), sum_of(width), split_of(first)


@kernel
def fold_rows(members, start, stop, tolerance, lower, upper, mean, scratch, scales):
    """As `bounds_rows`, with a `row_workspace` and a number for every member."""
    low, high = scratch[0], scratch[1]
    for row in range(start, stop):
        at = row - start
        below, _, _ = fold_row(members, row, tolerance, scales, low, high, lower[at], upper[at], mean[at])
        if not below >= 0.0:
            return False
    return True


@inlined
def alpha_of(below, width):
    """alpha = (1 - sum l) / sum (u - l) of the intersection probability l + alpha (u - l); zero where all widths vanish."""
    return min(max((1.0 - below) / width, 0.0), 1.0) if width > NARROW else 0.0


@inlined
def intersect_more(bottom, top, alpha, out, k):
    """The intersection probability of a vector of classes to place k of a row, as far as the row goes."""
    if k + WIDTH <= out.size:
        store(out, k, bottom + alpha * (top - bottom))
        fetch_to_write(out, k + out.size)
    else:
        store_some(out, k, bottom + alpha * (top - bottom), positions() < out.size - k)


@kernel
def intersect_rows(lower, upper, out, scratch):
    """As `intersection_rows`, with a `row_workspace`."""
    low, high = scratch[0], scratch[1]
    for row in range(lower.shape[0]):
        alpha = alpha_of(*read_row(lower[row], upper[row], low, high))
        for k in range(0, low.size, WIDTH):
            intersect_more(load(low, k), load(high, k), alpha, out[row], k)


def bounds_rows(members: Any, start: int, stop: int, tolerance: float, lower: Any, upper: Any, mean: Any) -> bool:
    """Lower, upper and mean probability of rows start..stop; False if a row is not a distribution."""
    scratch, scales = row_workspace(members.shape[2]), np.empty(len(members))
    return bool(fold_rows(members, start, stop, tolerance, lower, upper, mean, scratch, scales))


def intersection_rows(lower: Any, upper: Any, out: Any) -> None:
    """The intersection probability of every row."""
    intersect_rows(lower, upper, out, row_workspace(lower.shape[1]))
