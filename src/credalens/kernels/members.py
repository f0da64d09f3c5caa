"""Passes over member predictions, which read, validate and renormalise them: bounds and means, and classical entropies.

Also the intersection probability that follows from bounds.
"""

from typing import Any

import numpy as np

from credalens.kernels.buffers import last_vector, read_row, row_of, row_workspace
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    everywhere,
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
def scale_members(members, i, last, lanes, tolerance, scales):
    """Write what makes row i of every member sum to one; False if a sum is too far from it.

    That nothing is negative is for the lower bounds to tell.
    """
    for n in range(scales.size):
        p = members[n, i]
        total = load_some(p, last, lanes)
        for k in range(0, last, WIDTH):
            total = total + load(p, k)
        mass = sum_of(total)
        if not abs(mass - 1.0) <= tolerance:
            return False
        scales[n] = 1.0 if abs(mass - 1.0) <= EXACT else 1.0 / mass
    return True


@inlined
def fold_row(members, i, tolerance, scales, row, lower, upper, mean):
    """Lower, upper and mean probability of row i, the bounds also to its scratch memory (see ``buffers.py``).

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
        p = load_some(members[n, i], last, lanes) * scales[n]
        bottom, top, total = smaller(p, bottom), larger(p, top), total + p
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
            p = load(members[n, i], k) * scales[n]
            bottom, top, total = smaller(p, bottom), larger(p, top), total + p
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


def bounds_rows(members: Any, start: int, stop: int, tolerance: float, lower: Any, upper: Any, mean: Any) -> bool:
    """Lower, upper and mean probability of rows start..stop; False if a row is not a distribution."""
    workspace, scales = row_workspace(members.shape[2]), np.empty(len(members))
    return bool(fold_rows(members, start, stop, tolerance, lower, upper, mean, workspace, scales))


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


def intersection_rows(lower: Any, upper: Any, out: Any) -> None:
    """The intersection probability of every row."""
    intersect_rows(lower, upper, out, row_workspace(lower.shape[1]))


@kernel
def classical_rows(members, start, stop, tolerance, total, aleatoric, scales):
    """Entropy of the mean and mean entropy of rows start..stop in bits; False if a row is not a distribution.

    ``scales`` has a number for every member.
    """
    number, _, classes = members.shape
    last, lanes = last_vector(classes)
    share = 1.0 / number
    for i in range(start, stop):
        if not scale_members(members, i, last, lanes, tolerance, scales):
            return False
        entropies, least, mean = everywhere(0.0), everywhere(0.0), everywhere(0.0)
        for n in range(number):
            p = load_some(members[n, i], last, lanes) * scales[n]
            mean, entropies, least = mean + p, entropies + phi(p), smaller(p, least)
        of_mean = phi(mean * share)
        for k in range(0, last, WIDTH):
            mean = everywhere(0.0)
            for n in range(number):
                p = load(members[n, i], k) * scales[n]
                fetch(members[n, i], k + classes)
                mean, entropies, least = mean + p, entropies + phi(p), smaller(p, least)
            of_mean = of_mean + phi(mean * share)
        if bits_of(least < 0.0) != 0:
            return False
        total[i - start], aleatoric[i - start] = sum_of(of_mean), sum_of(entropies) * share
    return True
