"""Lower entropy: exact minimisation of a concave function over an interval credal set, with a certificate.

Let w = u - l and R = 1 - sum l. Facts, each one exchange argument (moving mass from a smaller to a larger probability
lowers entropy):

a. Some optimum is a vertex: every class down (at l_k) or up (at u_k), except at most one class at a value x between.
b. Threshold: a class that is up has u_k > x, a class that is down has l_k < x.
c. Dominance: if l_i >= l_j and u_i >= u_j, some optimum raises j only where i is up.
d. Chord bound: with phi replaced by its chord on each [l_k, u_k] the problem is a fractional knapsack, filled in
   order of the chords' slopes. Its solution is a vertex, hence feasible; its value bounds the optimum from below.

The solution of (d) is off by one class's concavity only, so that a better vertex flips few classes: it has them on the
other side. ``change.py`` says what a flip costs. A row is done as soon as its best vertex is certified:

1. by all vertices one change away and a bound of the others: ``lanes_lower.py`` (few classes), ``root.py`` (many, of which
   ``threshold.py`` leaves few);
2. by all sets of flips that might be better: ``flips.py`` (few), ``enumeration.py`` on the ``items.py`` (any number);
3. by branch and bound, where these sets are too many: ``branch.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from credalens.kernels.bounds import alpha_of, intersect_more
from credalens.kernels.lower.enumeration import cheapest_flips, flip_vertex, flips_workspace, write_vertex
from credalens.kernels.lower.root import break_class, gap_of, root
from credalens.kernels.lower.single_flip import SLACK
from credalens.kernels.lower.threshold import no_peaks, open_classes, open_workspace, peaks_more, peaks_of
from credalens.kernels.rows import read_row, row_workspace
from credalens.kernels.simd.jit import NONE, inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import WIDTH, bits_of, count, everywhere, fetch_to_write, load, store, sum_of
from credalens.kernels.upper import entropy_at, split_at, water_level

__all__ = ["both_entropies", "both_entropies_rows", "branch_rows", "lower_entropy_rows", "search_workspace", "unpacked"]

ROUNDING = 1e-14  # bits; of sums of entropies
MANY = 256  # classes; of fewer, most of those that might be flipped can be looked at
SHORT = 1.0 / 16.0  # of the cost of the knapsack's vertex: the best of a flat row is below


@kernel
def _enumerate(m, known, at, r, best, share, tolerance, max_nodes, workspace, out):
    """(cost of the best vertex, certified lower bound, nodes) by enumeration of flipped classes; the minimiser in ``out``.

    ``best`` is a cost that is attained. If ``share`` is less than one, or where too many classes might be flipped, vertices
    that cost only a share of the best one are looked for first: if there is one, little is left to do.
    """
    margin = max(tolerance - ROUNDING, 0.0)
    limit, floor, nodes = best - margin, 0.0, 0
    while True:
        before, trial = best, min(share * limit, best - margin)
        best, bound, spent = cheapest_flips(m, known, at, r, best, trial, margin, max_nodes - nodes, workspace)
        if best < before and out.size > 0:
            write_vertex(m, known, at, 0.0, out)
            flip_vertex(known, workspace, out)
        floor, nodes = max(floor, bound), nodes + spent
        stuck = spent == 0 and trial <= 2.0 * max(tolerance, floor)
        if stuck or floor >= best - margin or nodes >= max_nodes:
            return best, floor, nodes
        share *= 4.0 if spent > 0 else 0.5


@inlined
def _lowest(row, peaks, need, base, value, tolerance, max_nodes, known, workspace, out):
    """(lowest entropy, certified lower bound, nodes) of one row in bits; the minimiser in ``out`` if there is room for it.

    ``value`` is an entropy that is attained, or infinite; ``base`` that of the lower bounds, which sum to 1 - ``need`` and of
    which ``peaks`` are the greatest.
    """
    low, high, phi_low, phi_high = row
    for k in range(out.size):
        out[k] = low[k]
    if need <= SLACK:
        return base, base, 0
    m = open_classes(low, high, phi_low, phi_high, peaks, need, known)
    at, r, gain = break_class(m, known, need)
    if at < 0:
        return base, base, 0
    chord, floor, nodes = base + gain, 0.0, 0
    if out.size > 0:
        best, share = gap_of(known, at, r), SHORT if m > MANY else 1.0
        write_vertex(m, known, at, r, out)
    else:
        best, floor = root(m, known, at, r, tolerance)
        best, share = min(best, max(value - chord, 0.0)), 1.0
    if max_nodes > 0 and floor < best - tolerance:
        best, found, nodes = _enumerate(m, known, at, r, best, share, tolerance, max_nodes, workspace, out)
        floor = max(floor, found)
    return chord + best, chord + floor, nodes


def search_workspace(classes: int, /) -> tuple[Any, ...]:
    """Scratch memory for the row at hand, for its open classes, and for the search among them."""
    return row_workspace(classes), *open_workspace(classes), *flips_workspace()


@inlined
def unpacked(workspace):
    """The parts of a `search_workspace`: the row, what is known of open classes, the rest."""
    row, known, order, floats, integers, masses, nodes = workspace
    return (
        (row[0], row[1], row[2], row[3]),
        (known[0], known[1], known[2], known[3], known[4], order),
        (floats, integers, masses, nodes),
    )


@inlined
def _note(i, value, bound, tolerance, nodes, max_nodes, left, number):
    """List a row that is left open though there is still a budget."""
    left[number] = i  # kept only if the number moves on
    return number + ((bound < value - tolerance) & (nodes < max_nodes))


@kernel
def enumerate_rows(lower, upper, tolerance, max_nodes, entropy, bound, distribution, left, scratch):
    """(nodes, rows left open for which there is still a budget); the latter are listed in ``left``."""
    row, known, workspace = unpacked(scratch)
    low, high, phi_low, phi_high = row
    total, number = 0, 0
    for i in range(lower.shape[0]):
        out = distribution[i]
        value, floor = (np.inf, -np.inf) if out.size > 0 else (entropy[i], bound[i])
        if floor >= value - tolerance:
            continue
        below, _ = read_row(lower[i], upper[i], low, high)
        base, peaks = everywhere(0.0), no_peaks()
        for k in range(0, low.size, WIDTH):
            bottom = load(low, k)
            one = phi(bottom)
            base, peaks = base + one, peaks_more(bottom, peaks)
            store(phi_low, k, one)
            store(phi_high, k, phi(load(high, k)))
        found, least, nodes = _lowest(
            row, peaks_of(peaks), 1.0 - below, sum_of(base), value, tolerance, max_nodes, known, workspace, out
        )
        entropy[i], bound[i] = found, max(floor, least)
        number = _note(i, found, bound[i], tolerance, nodes, max_nodes, left, number)
        total += nodes
    return total, number


@inlined
def both_entropies(
    row, sums, first, tolerance, max_nodes, known, workspace, i, probability, beside, narrow, left, number
):
    """Highest entropy, lowest entropy and its bound of the row in the scratch memory to place i of ``narrow``, in bits, and its
    intersection probability.

    ``sums`` are those of the lower bounds and of the widths, ``first`` is what `water_level` starts from. While logarithms
    are worked out, the rows that follow those of three arrays ``beside`` are asked for: memory has time then, and all of them
    at once would wait for each other. Returns the number of rows listed in ``left``.
    """
    highest, lowest, bound = narrow
    low, high, phi_low, phi_high = row
    alpha, out = alpha_of(*sums), probability[i]
    t = water_level(low, high, out.size, first)
    total, base, peaks, moving = everywhere(0.0), everywhere(0.0), no_peaks(), low.size
    for k in range(0, low.size, WIDTH):
        bottom, top = load(low, k), load(high, k)
        one, two = phi(bottom), phi(top)
        store(phi_low, k, one)
        store(phi_high, k, two)
        intersect_more(bottom, top, alpha, out, k)
        fetch_to_write(beside[0], k + out.size)
        fetch_to_write(beside[1], k + out.size)
        fetch_to_write(beside[2], k + out.size)
        part, fixed = entropy_at(bottom, top, one, two, t)
        total, base, peaks = total + part, base + one, peaks_more(bottom, peaks)
        moving -= count(bits_of(fixed))
    highest[i] = sum_of(total) + moving * phi(t)
    nowhere = low[:0]
    lowest[i], bound[i], nodes = _lowest(
        row, peaks_of(peaks), 1.0 - sums[0], sum_of(base), np.inf, tolerance, max_nodes, known, workspace, nowhere
    )
    return _note(i, lowest[i], bound[i], tolerance, nodes, max_nodes, left, number)


@kernel
def both_entropies_rows(lower, upper, tolerance, max_nodes, probability, narrow, left, scratch):
    """As `both_entropies` for every row; how many are listed in ``left``."""
    classes, number = lower.shape[1], NONE
    row, known, workspace = unpacked(scratch)
    low, high, _, _ = row
    for i in range(lower.shape[0]):
        sums = read_row(lower[i], upper[i], low, high)
        first = split_at(low, high, 1.0 / classes)
        beside = lower[i], upper[i], probability[i]
        number = both_entropies(
            row, sums, first, tolerance, max_nodes, known, workspace, i, probability, beside, narrow, left, number
        )
    return number


def branch_rows(lower: Any, upper: Any, tolerance: float, max_nodes: int, left: Any, *results: Any) -> int:
    """Branch and bound for the rows left, to entropy, bound and distribution; compiled only when a row needs it."""
    from credalens.core.entropy import phi_pair
    from credalens.kernels.lower.branch import branch_and_bound_rows

    return int(branch_and_bound_rows(lower, upper, *phi_pair(lower, upper), tolerance, max_nodes, left, *results))


def lower_entropy_rows(*arguments: Any) -> int:
    """Lower entropy and its certified lower bound of every row, in bits; returns the number of nodes.

    Arguments: lower, upper, tolerance, max_nodes; entropy, bound, distribution, which are written.

    If ``distribution`` has columns, the minimisers go there. If not, ``entropy`` and ``bound`` come with what is known
    already, a value that is attained and a lower bound: rows where they meet are left alone, and for the others the search
    has only to better the value or to certify it.
    """
    known, results = arguments[:4], arguments[4:]
    left = np.empty(len(results[0]), np.int64)
    nodes, number = enumerate_rows(*known, *results, left, search_workspace(known[0].shape[1]))
    return int(nodes) + (branch_rows(*known, left[:number], *results) if number > 0 else 0)
