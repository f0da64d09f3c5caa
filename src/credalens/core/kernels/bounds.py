"""Members in, bounds out: the one pass that reads, validates, renormalises and folds member predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from credalens.core.kernels.change import larger, smaller
from credalens.core.kernels.jit import inlined, kernel
from credalens.core.kernels.rows import read_row, row_workspace
from credalens.core.kernels.vectors import (
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

__all__ = ["bounds_rows", "fold_row", "fold_rows", "intersect_row", "intersect_rows", "intersection_rows"]

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

    Returns the sums of the lower bounds and of the widths, NaN if a member's row is not a distribution.
    """
    number, _, classes = members.shape
    whole, share = classes - classes % WIDTH, 1.0 / number
    rest = positions() < classes - whole
    for n in range(number):
        scales[n] = _scale(members[n, row], whole, rest, tolerance)
        if not scales[n] > 0.0:
            return np.nan, np.nan
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
    for k in range(0, whole, WIDTH):
        bottom = load(members[0, row], k) * scales[0]
        fetch(members[0, row], k + classes)
        top, total = bottom, bottom
        for n in range(1, number):
            bottom, top, total = _folded(load(members[n, row], k) * scales[n], bottom, top, total)
            fetch(members[n, row], k + classes)
        fetch_to_write(lower, k + classes)
        fetch_to_write(upper, k + classes)
        fetch_to_write(mean, k + classes)
        store(low, k, bottom)
        store(high, k, top)
        store(lower, k, bottom)
        store(upper, k, top)
        store(mean, k, total * share)
        below, width, least = below + bottom, width + (top - bottom), smaller(bottom, least)
    if bits_of(least < 0.0) != 0:
        return np.nan, np.nan
    return sum_of(below), sum_of(width)


@kernel
def fold_rows(members, start, stop, tolerance, lower, upper, mean, scratch):
    """As `bounds_rows`, with a `row_workspace`."""
    low, high, scales = scratch[0], scratch[1], np.empty(members.shape[0])
    for row in range(start, stop):
        at = row - start
        below, _ = fold_row(members, row, tolerance, scales, low, high, lower[at], upper[at], mean[at])
        if not below >= 0.0:
            return False
    return True


@inlined
def intersect_row(low, high, below, width, out):
    """p* = l + alpha (u - l) with alpha = (1 - sum l) / sum (u - l); where all widths vanish, l itself."""
    alpha = min(max((1.0 - below) / width, 0.0), 1.0) if width > NARROW else 0.0
    whole = out.size - out.size % WIDTH
    for k in range(0, whole, WIDTH):
        bottom = load(low, k)
        store(out, k, bottom + alpha * (load(high, k) - bottom))
        fetch_to_write(out, k + out.size)
    bottom = load(low, whole)
    store_some(out, whole, bottom + alpha * (load(high, whole) - bottom), positions() < out.size - whole)


@kernel
def intersect_rows(lower, upper, out, scratch):
    """As `intersection_rows`, with a `row_workspace`."""
    low, high = scratch[0], scratch[1]
    for row in range(lower.shape[0]):
        below, width = read_row(lower[row], upper[row], low, high)
        intersect_row(low, high, below, width, out[row])


def bounds_rows(members: Any, start: int, stop: int, tolerance: float, lower: Any, upper: Any, mean: Any) -> bool:
    """Lower, upper and mean probability of rows start..stop; False if a row is not a distribution."""
    scratch = row_workspace(members.shape[2])
    return bool(fold_rows(members, start, stop, tolerance, lower, upper, mean, scratch))


def intersection_rows(lower: Any, upper: Any, out: Any) -> None:
    """The intersection probability of every row."""
    intersect_rows(lower, upper, out, row_workspace(lower.shape[1]))
