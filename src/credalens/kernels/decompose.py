"""Both entropies and the intersection probability of every row: from members, or from bounds."""

from __future__ import annotations

from credalens.kernels.bounds import alpha_of, fold_row, intersect_more
from credalens.kernels.lower.open_classes import no_peaks, peaks_more, peaks_of
from credalens.kernels.lower.records import write_record
from credalens.kernels.lower.solve import row_root, search_of
from credalens.kernels.rows import read_row
from credalens.kernels.simd.jit import NONE, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import WIDTH, bits_of, count, everywhere, fetch_to_write, load, store, sum_of
from credalens.kernels.upper import entropy_at, split_at, water_level


@inlined
def _solve(search, below, width, first_split, tolerance, probability, lower, upper, mean):
    """(highest entropy in bits, `RowRoot`) of the row in the scratch memory; writes its intersection probability.

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
    highest = sum_of(total) + moving * phi(t)
    return highest, row_root(search, peaks_of(peaks), 1.0 - below, sum_of(base), True, tolerance)


@kernel
def decompose_members(members, start, stop, allowed, tolerance, class_outputs, row_outputs, records, workspace, scales):
    """From rows start..stop of the members the rows of ``class_outputs`` (lower, upper, probability, mean), in the precision
    these have, and of ``row_outputs`` (total, aleatoric, bound) in bits.

    Returns how much of ``records`` describes rows left open (see ``lower/records.py``), or -1 if a row is not a
    distribution. ``workspace`` is a `search_workspace`, and ``scales`` has a number for every member.
    """
    lower, upper, probability, mean = class_outputs
    total, aleatoric, bound = row_outputs
    search, size = search_of(workspace), NONE
    for i in range(stop - start):
        below, width, first_split = fold_row(
            members, start + i, allowed, scales, search.row, lower[i], upper[i], mean[i]
        )
        if not below >= 0.0:
            return -1
        total[i], row = _solve(
            search, below, width, first_split, tolerance, probability[i], lower[i], upper[i], mean[i]
        )
        aleatoric[i], bound[i] = row.chord + row.best, row.chord + row.floor
        if row.floor < row.best - tolerance:
            size = write_record(i, row, records, size)
    return size


@kernel
def decompose_bounds(lower, upper, tolerance, probability, row_outputs, records, workspace):
    """The same from bounds in float64."""
    total, aleatoric, bound = row_outputs
    search, level, size = search_of(workspace), 1.0 / lower.shape[1], NONE
    for i in range(lower.shape[0]):
        below, width = read_row(lower[i], upper[i], search.row)
        first_split = split_at(search.row.low, search.row.high, level)
        total[i], row = _solve(
            search, below, width, first_split, tolerance, probability[i], lower[i], upper[i], probability[i]
        )
        aleatoric[i], bound[i] = row.chord + row.best, row.chord + row.floor
        if row.floor < row.best - tolerance:
            size = write_record(i, row, records, size)
    return size
