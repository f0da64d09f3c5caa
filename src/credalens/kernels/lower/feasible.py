"""Whether the minimisers that a search leaves lie in their credal sets."""

from __future__ import annotations

from credalens.kernels.simd.jit import NOBODY, kernel


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
