"""Members in, bounds out: the one pass that reads, validates, renormalises and folds member predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from credalens.kernels.rows import last_vector, read_row, row_of, row_workspace
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    fetch,
    fetch_to_write,
    larger,
    load,
    load_some,
    smaller,
    store,
    store_some,
    sum_of,
)
from credalens.kernels.upper import no_split, split_more, split_of

EXACT = 1e-14  # a row this close to one is left as it is: dividing would only move the last digits
NARROW = 1e-15  # mass; widths that sum to less are none


@inlined
def _scale(p, last, lanes, tolerance):
    """1 / sum of the row, or NaN if the sum is not one; that nothing is negative is for the lower bounds to tell."""
    total = load_some(p, last, lanes)
    for k in range(0, last, WIDTH):
        total = total + load(p, k)
    mass = sum_of(total)
    if not abs(mass - 1.0) <= tolerance:
        return np.nan
    return 1.0 if abs(mass - 1.0) <= EXACT else 1.0 / mass


@inlined
def scale_members(members, i, last, lanes, tolerance, scales):
    """Write what makes row i of every member sum to one; False if a sum is too far from it."""
    for n in range(scales.size):
        scales[n] = _scale(members[n, i], last, lanes, tolerance)
        if not scales[n] > 0.0:
            return False
    return True


@inlined
def _folded(value, low, high, total):
    return smaller(value, low), larger(value, high), total + value


@inlined
def fold_row(members, i, tolerance, scales, row, lower, upper, mean):
    """Lower, upper and mean probability of row i, the bounds also to its scratch memory (see ``rows.py``).

    Returns the sums of the lower bounds and of the widths, NaN if a member's row is not a distribution, and the bounds split
    at the level 1 / C, from which `water_level` starts.
    """
    number, _, classes = members.shape
    last, lanes = last_vector(classes)
    share, level = 1.0 / number, 1.0 / classes
    if not scale_members(members, i, last, lanes, tolerance, scales):
        return np.nan, np.nan, split_of(no_split())
    bottom = load_some(members[0, i], last, lanes) * scales[0]
    top, total = bottom, bottom
    for n in range(1, number):
        bottom, top, total = _folded(load_some(members[n, i], last, lanes) * scales[n], bottom, top, total)
    store(row.low, last, bottom)
    store(row.high, last, top)
    store_some(lower, last, bottom, lanes)
    store_some(upper, last, top, lanes)
    store_some(mean, last, total * share, lanes)
    below, width, least = bottom, top - bottom, bottom
    first = split_more(bottom, top, level, no_split())
    for k in range(0, last, WIDTH):
        bottom = load(members[0, i], k) * scales[0]
        fetch(members[0, i], k + classes)
        top, total = bottom, bottom
        for n in range(1, number):
            bottom, top, total = _folded(load(members[n, i], k) * scales[n], bottom, top, total)
            fetch(members[n, i], k + classes)
        store(row.low, k, bottom)
        store(row.high, k, top)
        store(lower, k, bottom)
        store(upper, k, top)
        store(mean, k, total * share)
        below, width, least = below + bottom, width + (top - bottom), smaller(bottom, least)
        first = split_more(bottom, top, level, first)
    if bits_of(least < 0.0) != 0:
        return np.nan, np.nan, split_of(first)
    return sum_of(below), sum_of(width), split_of(first)


@kernel
def fold_rows(members, start, stop, tolerance, lower, upper, mean, workspace, scales):
    """As `bounds_rows`, with a `row_workspace` and a number for every member."""
    row = row_of(workspace)
    for i in range(start, stop):
        at = i - start
        below, _, _ = fold_row(members, i, tolerance, scales, row, lower[at], upper[at], mean[at])
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
    last, lanes = last_vector(out.size)
    if k < last:
        store(out, k, bottom + alpha * (top - bottom))
        fetch_to_write(out, k + out.size)
    else:
        store_some(out, k, bottom + alpha * (top - bottom), lanes)


@kernel
def intersect_rows(lower, upper, out, workspace):
    """As `intersection_rows`, with a `row_workspace`."""
    row = row_of(workspace)
    for i in range(lower.shape[0]):
        below, width = read_row(lower[i], upper[i], row)
        alpha = alpha_of(below, width)
        for k in range(0, row.low.size, WIDTH):
            intersect_more(load(row.low, k), load(row.high, k), alpha, out[i], k)


def bounds_rows(members: Any, start: int, stop: int, tolerance: float, lower: Any, upper: Any, mean: Any) -> bool:
    """Lower, upper and mean probability of rows start..stop; False if a row is not a distribution."""
    workspace, scales = row_workspace(members.shape[2]), np.empty(len(members))
    return bool(fold_rows(members, start, stop, tolerance, lower, upper, mean, workspace, scales))


def intersection_rows(lower: Any, upper: Any, out: Any) -> None:
    """The intersection probability of every row."""
    intersect_rows(lower, upper, out, row_workspace(lower.shape[1]))
