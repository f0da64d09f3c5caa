"""The conformal quantile: a bound that a new score exceeds with at most a given probability."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from credalens.guard.binomial import most_hits


def conformal_quantile(scores: NDArray[np.float64], alpha: float, /) -> float:
    r"""The :math:`\lceil (n + 1)(1 - \alpha) \rceil`-th smallest of n scores; infinite where n is smaller than that.

    A new score, exchangeable with these, is above it with probability at most ``alpha``, ties included.

    >>> conformal_quantile(np.arange(1.0, 10.0), 0.2), conformal_quantile(np.arange(1.0, 9.0), 0.1)
    (8.0, inf)
    """
    above = most_hits(alpha, len(scores) + 1)
    return float(np.partition(scores, len(scores) - above)[len(scores) - above]) if above else math.inf


def least_samples(alpha: float, /) -> int:
    """How many samples a finite quantile needs."""
    n = max(1, math.floor(1 / alpha) - 2)
    while not most_hits(alpha, n + 1):
        n += 1
    return n
