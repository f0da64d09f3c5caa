"""Both entropies and the intersection probability of every row: from members, or from bounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from credalens.kernels.bounds import alpha_of, fold_row, intersect_more
from credalens.kernels.lower.solve import Budget, list_if_open, lowest_entropy, search_of
from credalens.kernels.lower.threshold import no_peaks, peaks_more, peaks_of
from credalens.kernels.rows import read_row
from credalens.kernels.simd.jit import NONE, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import WIDTH, bits_of, count, everywhere, fetch_to_write, load, store, sum_of
from credalens.kernels.upper import entropy_at, split_at, water_level

__all__ = ["RowEntropies", "decompose_bounds", "decompose_members"]


class RowEntropies(NamedTuple):
    """Highest and lowest entropy of a row and a certified lower bound of the latter, in bits; nodes of the search."""

    highest: Any
    lowest: Any
    bound: Any
    nodes: Any


@inlined
def _entropies(search, below, width, first_split, budget, probability, lower, upper, mean):
    """`RowEntropies` of the row in the scratch memory; writes its intersection probability.

    ``below`` and ``width`` are the sums of the lower bounds and of the widths, ``first_split`` is what `water_level` starts
    from. While logarithms are computed, the memory of the next row of all four arrays is fetched: there is time then, and all
    of it at once would wait.
    """
    row, classes = search.row, probability.size
    alpha = alpha_of(below, width)
    t = water_level(row.low, row.high, classes, first_split)
    total, base, peaks, moving = everywhere(0.0), everywhere(0.0), no_peaks(), row.low.size
    for k in range(0, row.low.size, WIDTH):
        bottom, top = load(row.low, k), load(row.high, k)
        phi_bottom, phi_top = phi(bottom), phi(top)
        store(row.phi_low, k, phi_bottom)
        store(row.phi_high, k, phi_top)
        intersect_more(bottom, top, alpha, probability, k)
        fetch_to_write(lower, k + classes)
        fetch_to_write(upper, k + classes)
        fetch_to_write(mean, k + classes)
        part, fixed = entropy_at(bottom, top, phi_bottom, phi_top, t)
        total, base, peaks = total + part, base + phi_bottom, peaks_more(bottom, peaks)
        moving -= count(bits_of(fixed))
    highest, nowhere = sum_of(total) + moving * phi(t), row.low[:0]
    lowest, bound, nodes = lowest_entropy(search, peaks_of(peaks), 1.0 - below, sum_of(base), np.inf, budget, nowhere)
    return RowEntropies(highest, lowest, bound, nodes)


@kernel
def decompose_members(
    members, start, stop, allowed, tolerance, max_nodes, class_outputs, row_outputs, open_rows, workspace, scales
):
    """From rows start..stop of the members the rows of ``class_outputs`` (lower, upper, probability, mean), in the precision
    these have, and of ``row_outputs`` (total, aleatoric, bound) in bits.

    Rows left open though there is a budget of nodes are listed in ``open_rows``. Returns how many these are, or -1 if a row
    is not a distribution. ``workspace`` is a `search_workspace`, and ``scales`` has a number for every member.
    """
    lower, upper, probability, mean = class_outputs
    total, aleatoric, bound = row_outputs
    search, budget = search_of(workspace), Budget(tolerance, max_nodes)
    number = NONE
    for i in range(stop - start):
        below, width, first_split = fold_row(
            members, start + i, allowed, scales, search.row, lower[i], upper[i], mean[i]
        )
        if not below >= 0.0:
            return -1
        entropies = _entropies(search, below, width, first_split, budget, probability[i], lower[i], upper[i], mean[i])
        total[i], aleatoric[i], bound[i] = entropies.highest, entropies.lowest, entropies.bound
        number = list_if_open(i, entropies.lowest, entropies.bound, entropies.nodes, budget, open_rows, number)
    return number


@kernel
def decompose_bounds(lower, upper, tolerance, max_nodes, probability, row_outputs, open_rows, workspace):
    """The same from bounds in float64."""
    total, aleatoric, bound = row_outputs
    search, budget = search_of(workspace), Budget(tolerance, max_nodes)
    level, number = 1.0 / lower.shape[1], NONE
    for i in range(lower.shape[0]):
        below, width = read_row(lower[i], upper[i], search.row)
        first_split = split_at(search.row.low, search.row.high, level)
        entropies = _entropies(
            search, below, width, first_split, budget, probability[i], lower[i], upper[i], probability[i]
        )
        total[i], aleatoric[i], bound[i] = entropies.highest, entropies.lowest, entropies.bound
        number = list_if_open(i, entropies.lowest, entropies.bound, entropies.nodes, budget, open_rows, number)
    return number
