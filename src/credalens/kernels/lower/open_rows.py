"""The rows that one enumeration leaves open: longer searches in turn, on bounds whose near ties are ties.

Two things make a row hard. Flat members leave thousands of vertices within a hair of the best one: branch and bound finds
better vertices there, after which fewer classes might be flipped and the enumeration ends, so the two take turns. And
intervals that agree but for rounding are nested in each other by chance, so that dominance (fact c of ``solve.py``) closes
nothing: bounds that agree nearly become one bound. The set is then wider, its lower bound a lower bound of the row, and its
minimiser, moved back into the set, loses no more than the bounds were moved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.lower.branch import branch_and_bound_rows
from credalens.kernels.lower.enumeration import flips_workspace
from credalens.kernels.lower.solve import enumerate_rows, search_workspace
from credalens.kernels.simd.phi import phi_into, phi_pair

FIRST = 20_000  # nodes of the first search of a row, by enumeration
MORE = 4  # times as many in the next one
NEAR = (2.0**-46, 2.0**-22)  # relative: the rounding of some operations in float64, and of one in float32


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
        value[better] = np.where(merged[chosen[better]], _entropy(p[better]), value[better])
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
        total += branch_and_bound_rows(
            low, high, phi_low, phi_high, tolerance, share, open_rows, value, bound, p
        )  # fmt: skip
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


def _entropy(p: NDArray) -> NDArray[np.float64]:
    terms = np.empty(p.size)
    phi_into(p.reshape(-1), terms)
    return terms.reshape(p.shape).sum(axis=1)
