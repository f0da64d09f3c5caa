"""Both entropies and the intersection probability of every row, from members or from bounds, and writing the results."""

from credalens.kernels import epistemic_part
from credalens.kernels.buffers import read_row
from credalens.kernels.lower.open_classes import no_peaks, peaks_more, peaks_of
from credalens.kernels.lower.solve import row_root, search_of, write_record
from credalens.kernels.members import alpha_of, fold_row, intersect_more
from credalens.kernels.simd.jit import NONE, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import (
    WIDTH,
    bits_of,
    choose,
    count,
    everywhere,
    fetch_to_write,
    load,
    store,
    sum_of,
)
from credalens.kernels.upper import entropy_at, split_at, water_level


@inlined
def _solve(
    i, search, below, width, first_split, tolerance, probability, lower, upper, mean, row_outputs, records, size
):
    """Write the intersection probability and the ``row_outputs`` of row i, which is in the scratch memory.

    A row that is left open is written to ``records``, of which ``size`` are used; returns how many are used now. ``below`` and
    ``width`` are the sums of the lower bounds and of the widths, ``first_split`` is what `water_level` starts from. While
    logarithms are computed, the memory of the next row of all four arrays is fetched: there is time then, and all of it at once
    would wait.
    """
    row, classes = search.row, probability.size
    total_bits, aleatoric, bound = row_outputs
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
    total_bits[i] = sum_of(total) + moving * phi(t)
    start = row_root(search, peaks_of(peaks), 1.0 - below, sum_of(base), True, tolerance)
    aleatoric[i], bound[i] = start.chord + start.best, start.chord + start.floor
    return write_record(i, start, records, size) if start.floor < start.best - tolerance else size


@kernel
def decompose_members(members, start, stop, allowed, tolerance, class_outputs, row_outputs, records, workspace, scales):
    """From rows start..stop of the members the rows of ``class_outputs`` (lower, upper, probability, mean), in the precision
    these have, and of ``row_outputs`` (total, aleatoric, bound) in bits.

    Returns how much of ``records`` describes rows left open (see `write_record`), or -1 if a row is not a
    distribution. ``workspace`` is a `search_workspace`, and ``scales`` has a number for every member.
    """
    lower, upper, probability, mean = class_outputs
    search, size = search_of(workspace), NONE
    for i in range(stop - start):
        given = fold_row(members, start + i, allowed, scales, search.row, lower[i], upper[i], mean[i])
        below, width, first_split = given
        if not below >= 0.0:
            return -1
        size = _solve(
            i, search, below, width, first_split, tolerance,
            probability[i], lower[i], upper[i], mean[i], row_outputs, records, size,
        )  # fmt: skip
    return size


@kernel
def decompose_bounds(lower, upper, tolerance, probability, row_outputs, records, workspace):
    """The same from bounds in float64."""
    search, level, size = search_of(workspace), 1.0 / lower.shape[1], NONE
    for i in range(lower.shape[0]):
        below, width = read_row(lower[i], upper[i], search.row)
        first_split = split_at(search.row.low, search.row.high, level)
        point = probability[i]
        size = _solve(
            i, search, below, width, first_split, tolerance,
            point, lower[i], upper[i], point, row_outputs, records, size,
        )  # fmt: skip
    return size


_epistemic_part = inlined(epistemic_part)


@inlined
def _unsigned(x):
    """x, and zero for what rounding puts below it, and for minus zero, which phi(1) is; NaN stays NaN."""
    return choose(x <= 0.0, 0.0, x)


@kernel
def write_results(entropies, scale, total, aleatoric, epistemic, bound):
    """All four results times ``scale`` from the rows of ``entropies`` in bits: highest, lowest, and a bound of the lowest."""
    highest, lowest, least = entropies[0], entropies[1], entropies[2]
    for i in range(highest.size):
        # In order: each of the three was rounded on its own way.
        low = _unsigned(lowest[i])
        high = choose(highest[i] < low, low, highest[i])
        total[i], aleatoric[i] = _unsigned(high) * scale, low * scale
        bound[i] = _unsigned(choose(least[i] > low, low, least[i])) * scale
        epistemic[i] = _epistemic_part(highest[i], lowest[i]) * scale
