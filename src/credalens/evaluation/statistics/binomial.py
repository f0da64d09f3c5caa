"""The exact interval of a share (Clopper and Pearson 1934)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def binomial_interval(hits: int, n: int, /, *, level: float = 0.95) -> tuple[float, float]:
    r"""[low, high] with :math:`P(X \ge hits \mid low) = P(X \le hits \mid high) = (1 - level) / 2`, X binomial of n.

    Its coverage is never below ``level``. By bisection on the tail, O(n) a step.

    >>> [round(bound, 4) for bound in binomial_interval(0, 10)], [round(bound, 4) for bound in binomial_interval(5, 10)]
    ([0.0, 0.3085], [0.1871, 0.8129])
    """
    tail = (1 - level) / 2
    below, above = tail_of(hits - 1, n), tail_of(hits, n)
    low = 0.0 if hits == 0 else _root(lambda p: 1 - below(p) - tail)
    high = 1.0 if hits == n else _root(lambda p: tail - above(p))
    return low, high


def tail_of(hits: int, n: int, /) -> Callable[[float], float]:
    """p -> P(X <= hits) for X binomial of n with probability p."""
    k = np.arange(hits + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((n - k[:-1]) / (k[:-1] + 1)))])  # log of n over k

    def probability(p: float) -> float:
        if p <= 0.0 or hits >= n:
            return 1.0
        if p >= 1.0:
            return 0.0
        return min(1.0, float(np.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p)).sum()))

    return probability


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function crosses zero in [0, 1]."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return 0.5 * (low + high)
