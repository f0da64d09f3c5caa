"""Members in, what a credal prediction holds out, for many classes: one row after the other, whole vectors of classes."""

from __future__ import annotations

from credalens.kernels.bounds import fold_row
from credalens.kernels.lower.solve import both_entropies, unpacked
from credalens.kernels.simd.jit import NONE, kernel

__all__ = ["decompose_many_rows"]


@kernel
def decompose_many_rows(members, start, stop, allowed, tolerance, max_nodes, wide, narrow, left, scratch, scales):
    """From rows start..stop of the members the rows of ``wide`` (lower, upper, probability, mean), in the precision these
    have, and of ``narrow`` (total, aleatoric, bound) in bits.

    Rows left open though there is a budget of nodes are listed in ``left``. Returns how many these are, or -1 if a row is
    not a distribution. ``scratch`` is a `search_workspace`, and ``scales`` has a number for every member.
    """
    lower, upper, probability, mean = wide
    row, known, workspace = unpacked(scratch)
    low, high, _, _ = row
    count = NONE
    for i in range(stop - start):
        below, width, first = fold_row(members, start + i, allowed, scales, low, high, lower[i], upper[i], mean[i])
        if not below >= 0.0:
            return -1
        sums, beside = (below, width), (lower[i], upper[i], mean[i])
        count = both_entropies(
            row, sums, first, tolerance, max_nodes, known, workspace, i, probability, beside, narrow, left, count
        )
    return count
