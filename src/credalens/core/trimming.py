"""Trimmed intervals: the bounds of each class without its most extreme members, which many members always have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.core.intervals import tightened


def left_out(trim: float, members: int, /) -> int:
    """How many members are left out at each end.

    >>> left_out(0.1, 40), left_out(0.1, 5), left_out(0.29, 100)
    (4, 0, 29)
    """
    count = int(trim * members)
    return count + 1 if (count + 1) / members <= trim else count


def trimmed_bounds(p: NDArray[np.float64], out: int, /) -> tuple[NDArray, NDArray, NDArray]:
    """Reachable bounds and mean, (rows, classes), of members (N, rows, classes) without ``out`` of them at each end."""
    ordered = np.partition(p, (out, len(p) - 1 - out), axis=0)
    return trimmed_between(ordered[out], ordered[len(p) - 1 - out], p.mean(axis=0))


def trimmed_between(low: NDArray, high: NDArray, mean: NDArray, /) -> tuple[NDArray, NDArray, NDArray]:
    """Reachable bounds around the (k + 1)-th lowest and highest values.

    They are widened to hold the mean, so that the set is never empty, and then tightened.
    """
    return *tightened(np.minimum(low, mean), np.maximum(high, mean)), mean
