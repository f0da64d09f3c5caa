"""Lower entropy: minimisation of a concave function over an interval credal set, with a certificate.

Let w = u - l and R = 1 - sum l. Facts, each one exchange argument (moving mass from a smaller to a larger probability
lowers entropy):

a. Some optimum is a vertex: every class down (at l_k) or up (at u_k), except at most one class at a value x between.
b. Threshold: a class that is up has u_k > x, a class that is down has l_k < x.
c. Dominance: if l_i >= l_j and u_i >= u_j, some optimum raises j only where i is up.
d. Chord bound: with phi replaced by its chord on each [l_k, u_k] the problem is a fractional knapsack, filled in
   order of the chords' slopes. Its solution is a vertex, hence feasible; its value bounds the optimum from below.

The solution of (d) is off by one class's concavity only, so that a better vertex flips few classes: it has them on the
other side. A row is done as soon as its best vertex is certified:

1. by all vertices one flip away and a bound of the others: ``root.py``, on the classes that ``open_classes.py`` leaves open;
2. by all sets of flips that might be better: ``enumeration.py``;
3. by rounds of branch and bound (``branch.py``) and enumeration, where these sets are too many: `solve_open_rows`.

Rows that one enumeration leaves open are searched longer, on bounds whose near ties are ties.
Two things make a row hard. Flat members leave thousands of vertices within a hair of the best one: branch and bound finds
better vertices there, after which fewer classes might be flipped and the enumeration ends, so the two take turns. And
intervals that agree but for rounding are nested in each other by chance, so that dominance (fact c of ``solve.py``) closes
nothing: bounds that agree nearly become one bound. The set is then wider, its lower bound a lower bound of the row, and its
minimiser, moved back into the set, loses no more than the bounds were moved.
"""

from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.buffers import aligned_empty, read_row, row_of, row_workspace, whole_vectors
from credalens.kernels.lower.branch import branch_and_bound_rows
from credalens.kernels.lower.enumeration import cheapest_flips, flip_vertex, flips_of, flips_workspace, write_vertex
from credalens.kernels.lower.open_classes import (
    OpenClasses,
    no_peaks,
    open_classes,
    open_workspace,
    peaks_more,
    peaks_of,
)
from credalens.kernels.lower.root import SLACK, break_class, gap_of, root
from credalens.kernels.simd.jit import NOBODY, NONE, inlined, kernel
from credalens.kernels.simd.phi import entropy_of, phi, phi_pair
from credalens.kernels.simd.vectors import WIDTH, everywhere, load, store, sum_of

FIRST = 20_000  # nodes of the first search of a row, by enumeration
MORE = 4  # times as many in the next one
NEAR = (2.0**-46, 2.0**-22)  # relative: the rounding of some operations in float64, and of one in float32
ROUNDING = 1e-14  # bits; of sums of entropies
MANY = 256  # classes; of fewer, most of those that might be flipped can be looked at
SHORT = 1.0 / 16.0  # of the cost of the knapsack's vertex: the best of a flat row is below

RowRoot = namedtuple("RowRoot", "chord best floor m at r classes")
"""The chord bound of a row; cost of the best vertex seen, and a lower bound of every vertex's cost, both over the chord
bound, in bits; number of open classes, the break class, its mass r, and the classes."""

Search = namedtuple("Search", "row classes")
"""Scratch memory for the row and for its open classes."""


def search_workspace(classes: int, /) -> tuple[Any, ...]:
    """Scratch memory for a `Search`."""
    return row_workspace(classes), *open_workspace(classes)


@inlined
def search_of(workspace):
    """A `search_workspace` with names."""
    row, bounds, order = workspace
    return Search(row_of(row), OpenClasses(bounds[0], bounds[1], bounds[2], bounds[3], bounds[4], order))


@inlined
def row_root(search, peaks, need, base, certify, tolerance):
    """The `RowRoot` of the row in the scratch memory; ``certify`` asks for all vertices one flip away.

    ``base`` is the entropy of the lower bounds, which sum to 1 - ``need`` and of which ``peaks`` are the greatest.
    """
    if need <= SLACK:
        return RowRoot(base, 0.0, 0.0, NONE, NOBODY, 0.0, search.classes)
    m, threshold, classes = open_classes(search.row, peaks, need, search.classes)
    at, r, gain = break_class(m, classes, threshold, need)
    if at < 0:
        return RowRoot(base, 0.0, 0.0, NONE, at, 0.0, classes)
    best, floor = root(m, classes, at, r, tolerance) if certify else (gap_of(classes, at, r), 0.0)
    return RowRoot(base + gain, best, floor, m, at, r, classes)


@kernel
def enumerate_row(start, best, share, tolerance, max_nodes, search, low, out):
    """(cost of the best vertex, certified lower bound, nodes) by enumeration of flipped classes, from the `RowRoot` ``start``.

    ``best`` is a cost that is attained; a vertex that betters it goes into ``out`` if there is room for it. If ``share`` is
    less than one, or where too many classes might be flipped, vertices that cost only a share of the best one are looked for
    first: if there is one, little is left to do.
    """
    margin = max(tolerance - ROUNDING, 0.0)
    limit, floor, nodes = best - margin, 0.0, 0
    while True:
        before, trial = best, min(share * limit, best - margin)
        best, bound, spent = cheapest_flips(start, best, trial, margin, max_nodes - nodes, search)
        if best < before and out.size > 0:
            write_vertex(start, 0.0, low, out)
            flip_vertex(start.classes, search, out)
        floor, nodes = max(floor, bound), nodes + spent
        stuck = spent == 0 and trial <= 2.0 * max(tolerance, floor)
        if stuck or floor >= best - margin or nodes >= max_nodes:
            return best, floor, nodes
        share *= 4.0 if spent > 0 else 0.5


@inlined
def list_if_open(i, value, bound, tolerance, open_rows, number):
    """List row i if it is open; returns how many are listed."""
    open_rows[number] = i  # valid only if the number moves on
    return number + (bound < value - tolerance)


# The record of a row that the root leaves open: a few numbers and, of the open classes in whole vectors, lower and upper
# bounds, phi of both, and slopes. Records are enumerated by a kernel of their own, which keeps the loop over all rows
# short.
ROW, OPEN, AT, TAKEN, BEST, FLOOR, CHORD = range(7)
CLASSES = 8  # where the classes begin


def records_workspace(rows: int, classes: int, /) -> NDArray[np.float64]:
    """Room for a record of every row."""
    return aligned_empty((rows * (CLASSES + 5 * whole_vectors(classes)),))


@inlined
def write_record(i, row, records, start):
    """Append the record of row i; returns where the next one begins."""
    records[start + ROW], records[start + OPEN], records[start + AT] = i, row.m, row.at
    records[start + TAKEN], records[start + BEST] = row.r, row.best
    records[start + FLOOR], records[start + CHORD] = row.floor, row.chord
    size, classes = row.m + -row.m % WIDTH, row.classes
    for k in range(0, size, WIDTH):
        at = start + CLASSES + k
        store(records, at, load(classes.low, k))
        store(records, at + size, load(classes.high, k))
        store(records, at + 2 * size, load(classes.phi_low, k))
        store(records, at + 3 * size, load(classes.phi_high, k))
        store(records, at + 4 * size, load(classes.slope, k))
    return start + CLASSES + 5 * size


@kernel
def enumerate_records(records, end, tolerance, max_nodes, entropy, bound, open_rows, workspace):
    """Better the entropies of the rows with records, or raise their bounds, in bits, in a `flips_workspace`.

    Rows left open are listed in ``open_rows``; returns how many.
    """
    search, nowhere, start, number = flips_of(workspace), records[:0], 0, 0
    while start < end:
        i, m, at = int(records[start + ROW]), int(records[start + OPEN]), int(records[start + AT])
        r, best = records[start + TAKEN], records[start + BEST]
        floor, chord = records[start + FLOOR], records[start + CHORD]
        size, low = m + -m % WIDTH, start + CLASSES
        high, phi_low, phi_high = low + size, low + 2 * size, low + 3 * size
        slope, start = low + 4 * size, low + 5 * size
        classes = OpenClasses(
            records[low:high], records[high:phi_low], records[phi_low:phi_high], records[phi_high:slope],
            records[slope:start], open_rows,  # the order is never read: no vertex is written
        )  # fmt: skip
        row = RowRoot(chord, best, floor, m, at, r, classes)
        best, certified, _ = enumerate_row(row, best, 1.0, tolerance, max_nodes, search, nowhere, nowhere)
        entropy[i], bound[i] = chord + best, chord + max(floor, certified)
        number = list_if_open(i, entropy[i], bound[i], tolerance, open_rows, number)
    return number


@kernel
def enumerate_rows(lower, upper, tolerance, max_nodes, entropy, bound, distribution, open_rows, workspace, flips):
    """(nodes, number of rows left open); the latter are listed in ``open_rows``.

    ``entropy`` and ``bound`` come with what is known, an entropy that is attained, or infinity, and a lower bound: rows where
    they meet are left alone, and for the others the search has only to better the one or to raise the other. If
    ``distribution`` has columns it follows the entropy. A row is done when the two are within ``tolerance`` bits, or after
    ``max_nodes`` nodes, each the work of one set of flips. With a `search_workspace` and a `flips_workspace`.
    """
    search, flip_search, total, number = search_of(workspace), flips_of(flips), 0, 0
    row = search.row
    for i in range(lower.shape[0]):
        value, floor, out = entropy[i], bound[i], distribution[i]
        if floor >= value - tolerance:
            continue
        below, _ = read_row(lower[i], upper[i], row)
        base, peaks = everywhere(0.0), no_peaks()
        for k in range(0, row.low.size, WIDTH):
            bottom = load(row.low, k)
            phi_bottom = phi(bottom)
            base, peaks = base + phi_bottom, peaks_more(bottom, peaks)
            store(row.phi_low, k, phi_bottom)
            store(row.phi_high, k, phi(load(row.high, k)))
        start = row_root(search, peaks_of(peaks), 1.0 - below, sum_of(base), out.size == 0, tolerance)
        known, least = max(value - start.chord, 0.0), start.floor
        best = min(start.best, known)
        if out.size > 0 and start.best < known:
            write_vertex(start, start.r, row.low, out)
        if max_nodes > 0 and least < best - tolerance:
            share = SHORT if out.size > 0 and start.m > MANY else 1.0
            best, certified, nodes = enumerate_row(start, best, share, tolerance, max_nodes, flip_search, row.low, out)
            least, total = max(least, certified), total + nodes
        entropy[i], bound[i] = start.chord + best, max(floor, start.chord + least)
        number = list_if_open(i, entropy[i], bound[i], tolerance, open_rows, number)
    return total, number


def lower_entropy_rows(
    lower: Any, upper: Any, tolerance: float, max_nodes: int, entropy: Any, bound: Any, distribution: Any
) -> int:
    """Write lower entropy and its certified lower bound of every row, in bits; returns the number of nodes.

    ``entropy``, ``bound`` and ``distribution`` as for `enumerate_rows`.
    """
    open_rows = np.empty(len(entropy), np.int64)
    workspace, flips = search_workspace(lower.shape[1]), flips_workspace()
    nodes, number = enumerate_rows(
        lower, upper, tolerance, first_share(max_nodes), entropy, bound, distribution, open_rows, workspace, flips
    )
    if number > 0 and max_nodes > 0:
        rows = open_rows[:number]
        nodes += solve_open_rows(lower[rows], upper[rows], tolerance, max_nodes, rows, entropy, bound, distribution)
    np.maximum(entropy, 0.0, out=entropy)
    bound[:] = np.clip(bound, 0.0, entropy)  # each was rounded on its own way
    return int(nodes)


def first_share(max_nodes: int, /) -> int:
    """How many of a row's nodes the first enumeration may take."""
    return min(FIRST, (max_nodes + 1) // 2)


def solve_open_rows(
    lower: NDArray, upper: NDArray, tolerance: float, max_nodes: int,
    rows: NDArray, entropy: NDArray, bound: NDArray, distribution: NDArray,
) -> int:  # fmt: skip
    """Better the entropies of some rows, whose bounds are given, or raise their bounds until they meet; returns the nodes.

    ``entropy``, ``bound`` and ``distribution`` are of all rows, as for `enumerate_rows`. A row that stays open is tried once
    more where some of its bounds agree as far as float32 tells.
    """
    nodes = 0
    for near in NEAR:
        low, high = merge_near(lower, near), -merge_near(-upper, near)
        merged = ((low != lower) | (high != upper)).any(axis=1)
        chosen = np.flatnonzero((bound[rows] < entropy[rows] - tolerance) & (merged | (near == NEAR[0])))
        if not chosen.size:
            continue
        which = rows[chosen]
        value, floor, p = entropy[which], bound[which], np.empty((len(which), lower.shape[1]))
        known = value.copy()
        nodes += _in_turn(low[chosen], high[chosen], tolerance, max_nodes, value, floor, p)
        better = value < known
        p[better] = _moved_into(lower[chosen[better]], upper[chosen[better]], p[better])
        value[better] = np.where(merged[chosen[better]], entropy_of(p[better]), value[better])
        better &= value < known
        entropy[which], bound[which] = np.minimum(value, known), np.minimum(np.maximum(floor, bound[which]), known)
        if distribution.shape[1]:
            distribution[which[better]] = p[better]
    return nodes


def _in_turn(
    low: NDArray, high: NDArray, tolerance: float, max_nodes: int, value: NDArray, bound: NDArray, p: NDArray
) -> int:
    """Branch and bound, then enumeration, then both with more nodes, until all rows are done or the nodes are used up."""
    (phi_low, phi_high), (rows, classes) = phi_pair(low, high), low.shape
    workspace, flips, waiting = search_workspace(classes), flips_workspace(), np.empty(rows, np.int64)
    open_rows, share = np.arange(rows), first_share(max_nodes)
    total, left = 0, max_nodes - share
    while left > 0 and open_rows.size:
        share = min(share, left)
        total += branch_and_bound_rows(low, high, phi_low, phi_high, tolerance, share, open_rows, value, bound, p)
        left, share = left - share, min(MORE * share, left - share)
        nodes, number = enumerate_rows(low, high, tolerance, share, value, bound, p, waiting, workspace, flips)
        open_rows, left, total = waiting[:number].copy(), left - share, total + nodes
    return total


def merge_near(bounds: NDArray, near: float, /) -> NDArray[np.float64]:
    """In each row, every run of values that differ from the next by a share ``near`` or less as its least value.

    >>> merge_near(np.array([[0.3, 0.1, 0.3 + 1e-15, 0.2]]), 2.0**-46).tolist()
    [[0.3, 0.1, 0.3, 0.2]]
    """
    order = np.argsort(bounds, axis=1, kind="stable")
    ordered = np.take_along_axis(bounds, order, axis=1)
    begins = np.ones(bounds.shape, bool)
    begins[:, 1:] = np.diff(ordered, axis=1) > near * np.abs(ordered[:, 1:])
    first = np.maximum.accumulate(np.where(begins, np.arange(bounds.shape[1]), 0), axis=1)
    merged = np.empty_like(bounds)
    np.put_along_axis(merged, order, np.take_along_axis(ordered, first, axis=1), axis=1)
    return merged


def _moved_into(low: NDArray, high: NDArray, p: NDArray) -> NDArray[np.float64]:
    """The nearest distributions within the bounds, nearly: ``p`` leaves them by little."""
    p = np.clip(p, low, high)
    missing = 1.0 - p.sum(axis=1, keepdims=True)
    room = np.where(missing > 0.0, high - p, p - low)
    share = np.abs(missing) / np.maximum(room.sum(axis=1, keepdims=True), np.abs(missing) + np.finfo(float).tiny)
    return p + np.sign(missing) * share * room


@kernel
def first_outside(lower, upper, p, slack):
    """The first row that is beyond its bounds, or sums to something else than one, by more than ``slack``; -1 if none is."""
    for i in range(p.shape[0]):
        total, beyond = 0.0, 0.0
        for k in range(p.shape[1]):
            total += p[i, k]
            beyond += max(lower[i, k] - p[i, k], 0.0) + max(p[i, k] - upper[i, k], 0.0)
        if not (abs(total - 1.0) <= slack and beyond <= slack):
            return i
    return NOBODY
