"""Members in, bounds out: the one pass that reads, validates, renormalises and folds member predictions."""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.jit import kernel

__all__ = ["bounds_rows", "intersection_rows"]

EXACT = 1e-14  # a row this close to one is left as it is: dividing would only move the last digits


@kernel
def _scale(row, tolerance):
    """1 / sum(row), or NaN if the row is not a probability distribution."""
    total, below = 0.0, 0.0
    for k in range(row.size):
        value = np.float64(row[k])
        total += value
        below += value if value < 0.0 else 0.0  # a sum is vectorised, a minimum is not: NaN might be in it
    if not (below >= 0.0 and abs(total - 1.0) <= tolerance):
        return np.nan
    return 1.0 if abs(total - 1.0) <= EXACT else 1.0 / total


@kernel
def bounds_rows(members, start, stop, tolerance, lower, upper, mean):
    """Lower, upper and mean probability of rows start..stop; False if a row is not a distribution."""
    count = members.shape[0]
    for row in range(start, stop):
        low, high, average = lower[row - start], upper[row - start], mean[row - start]
        for n in range(count):
            p = members[n, row]
            scale = _scale(p, tolerance)
            if not scale > 0.0:
                return False
            if n == 0:
                for k in range(p.size):
                    low[k] = high[k] = average[k] = p[k] * scale
            else:
                for k in range(p.size):
                    value = p[k] * scale
                    low[k] = value if value < low[k] else low[k]
                    high[k] = value if value > high[k] else high[k]
                    average[k] += value
        for k in range(average.size):
            average[k] /= count
    return True


@kernel
def intersection_rows(lower, upper, out):
    """p* = l + alpha (u - l) with alpha = (1 - sum l) / sum (u - l); where all widths vanish, l itself."""
    for row in range(lower.shape[0]):
        low, high, p = lower[row], upper[row], out[row]
        below, width = 0.0, 0.0
        for k in range(low.size):
            below += low[k]
            width += high[k] - low[k]
        alpha = min(max((1.0 - below) / width, 0.0), 1.0) if width > 1e-15 else 0.0
        for k in range(low.size):
            p[k] = low[k] + alpha * (high[k] - low[k])
