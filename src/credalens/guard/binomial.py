"""Exact statements about shares: binomial intervals (Clopper and Pearson 1934) and tails, and what calibration promises.

Conformal p-values say how unlike the calibration data an input is; the conformal quantile is a bound that a new score exceeds
with at most a given probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.guard.signature import ORDINARY, Slack


def binomial_interval(hits: int, n: int, /, *, level: float = 0.95) -> tuple[float, float]:
    r"""[low, high] with :math:`P(X \ge hits \mid low) = P(X \le hits \mid high) = (1 - level) / 2`, X binomial of n.

    Its coverage is never below ``level``. By bisection on the tail, O(n) per step.

    >>> [round(bound, 4) for bound in binomial_interval(0, 10)], [round(bound, 4) for bound in binomial_interval(5, 10)]
    ([0.0, 0.3085], [0.1871, 0.8129])
    """
    tail = (1 - level) / 2
    below = tail_of(hits - 1, n)
    low = 0.0 if hits == 0 else _root(lambda p: 1 - below(p) - tail)
    return low, upper_bound(hits, n, level=1 - tail)


def upper_bound(hits: int, n: int, /, *, level: float = 0.95) -> float:
    r"""The smallest rate that ``hits`` of ``n`` rule out at ``level``: :math:`P(X \le hits \mid bound) = 1 - level`."""
    tail = tail_of(hits, n)
    return 1.0 if hits == n else _root(lambda p: 1 - level - tail(p))


@lru_cache(maxsize=1 << 14)
def binomial_tail(hits: int, n: int, p: float, /) -> float:
    """P(X <= hits) for X binomial of n with probability p: the p-value of "the rate is above p"."""
    return tail_of(hits, n)(p)


def tail_of(hits: int, n: int, /) -> Callable[[float], float]:
    """p -> P(X <= hits) for X binomial of n with probability p."""
    masses = masses_of(hits, n)
    return lambda p: 1.0 if p <= 0.0 or hits >= n else min(1.0, float(masses(p).sum()))


def masses_of(most: int, n: int, /) -> Callable[[float], NDArray[np.float64]]:
    """p -> P(X = k) for k = 0..most, X binomial of n with probability p."""
    k = np.arange(most + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log((n - k[:-1]) / (k[:-1] + 1)))])  # log of n over k

    def masses(p: float) -> NDArray[np.float64]:
        if p <= 0 or p >= 1:
            return (k == (0 if p <= 0 else n)).astype(np.float64)
        return np.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))

    return masses


def most_hits(rate: float, n: int, /) -> int:
    """The largest count with count / n <= rate; the product alone may round 0.29 * 100 down to 28."""
    count = math.floor(rate * n)
    return count + 1 if (count + 1) / n <= rate else count


def conformal_excess(hits: int, /, n: int, rate: float, calibrated: int) -> float:
    r"""P(X >= hits), X of n new inputs beyond the conformal quantile of ``calibrated`` exchangeable ones at ``rate``.

    Given the calibration data the rate is not ``rate`` but a draw from a beta distribution, so that X is beta-binomial:
    :math:`P(X = k) = \binom{n}{k} B(k + a, n - k + b) / B(a, b)`, :math:`a = \lfloor r (m + 1) \rfloor`, :math:`a + b = m + 1`.
    """
    a = most_hits(rate, calibrated + 1)
    if not a:  # an infinite quantile
        return float(hits == 0)
    b, k = calibrated + 1 - a, np.arange(n)
    ratios = np.log((n - k) / (k + 1)) + np.log((k + a) / (n - k - 1 + b))
    weights = np.concatenate([[0.0], np.cumsum(ratios)])
    chances = np.exp(weights - weights.max())
    return float(chances[hits:].sum() / chances.sum())


def conformal_rate_range(rate: float, calibrated: int, /, *, level: float = 0.95) -> tuple[float, float]:
    r"""Where the rate of one conformal quantile lies with probability ``level`` over the draw of its calibration data.

    For scores without ties it follows the beta distribution of `conformal_excess`, whose quantiles are binomial tails:
    :math:`P(\mathrm{rate} \le x) = P(X \ge a)`, X binomial of m with probability x. Ties make it smaller.

    >>> [round(bound, 4) for bound in conformal_rate_range(0.05, 1000)]
    [0.0373, 0.0643]
    """
    tail, a = (1 - level) / 2, most_hits(rate, calibrated + 1)
    return binomial_interval(a, calibrated, level=level)[0], upper_bound(a - 1, calibrated, level=1 - tail)


def largest_kept(p_value: Callable[[int], float], n: int, level: float, /) -> int:
    """The largest count of n whose ``p_value``, which falls with the count and begins at 1, is above ``level``."""
    kept, broken = 0, n + 1
    while broken - kept > 1:
        middle = (kept + broken) // 2
        kept, broken = (middle, broken) if p_value(middle) > level else (kept, middle)
    return kept


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function crosses zero in [0, 1]."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


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


SHIFT: Final = 39  # 8192 steps for every factor of two
ROUNDING: Final = 1e-6  # of a highest value, in float32
STEPS: Final = 1 << 17  # down to 2**-16 of the largest score


def p_values(ordered: NDArray, scores: NDArray, /) -> NDArray[np.float64]:
    r"""The p-value of being like the calibration data, whose scores are ``ordered``, in the shape of ``scores``.

    .. math:: p = (1 + |\{i : s_i \ge s\}|) / (n + 1)

    For an input exchangeable with the calibration data :math:`P(p \le r) \le r` at every r, ties included.

    >>> p_values(np.array([1.0, 2.0, 2.0]), np.array([0.0, 2.0, 3.0]))
    array([1.  , 0.75, 0.25])
    """
    total = len(ordered) + 1
    return (total - np.searchsorted(ordered, scores, side="left")) / total


@dataclass(frozen=True, eq=False)
class PValueTable:
    """The same for many scores at a time, five times as fast: where those with some leading bits begin among ``ordered``.

    Bits of positive numbers are in order as integers. Negative ones, which run the other way, share the first entry.
    """

    ordered: NDArray[np.float64]
    starts: NDArray[np.int32]
    first: int

    @classmethod
    def of(cls, ordered: NDArray[np.float64], /) -> PValueTable:
        """The table of at least one calibration score."""
        leading = ordered.view(np.int64) >> SHIFT
        first = max(int(leading[-1]) - STEPS + 1, 0)
        starts = np.searchsorted(np.clip(leading - first, 0, STEPS - 1), np.arange(STEPS + 1))
        return cls(ordered, starts.astype(np.int32), first)

    def p_values(self, scores: NDArray[np.float64], /) -> NDArray[np.float64]:
        """In the shape of ``scores``."""
        from credalens.kernels.decisions import shares_above

        flat = np.ascontiguousarray(scores).reshape(-1)
        p = np.empty(flat.size)
        shares_above(self.ordered, self.starts, self.first, SHIFT, flat, flat.view(np.int64), p)
        return p.reshape(scores.shape)


def alarm_threshold(ordered: NDArray, rate: float, /) -> float:
    """The calibration score t such that s > t exactly where the p-value of s is at most ``rate``, but for rounding."""
    if len(ordered) < (least := least_samples(rate)):
        raise ValueError(
            f"{count_text(len(ordered), 'sample')} cannot promise a false-alarm rate of {rate:g} on new data; at least "
            f"{least} are needed."
        )
    return conformal_quantile(ordered, rate)


def share_at_top(scores: NDArray, rate: float, highest: float, /, slack: Slack = ORDINARY) -> float:
    """The share of the scores that have the ``highest`` value there can be, where it is the threshold of ``rate``; otherwise 0.

    Nothing is above that threshold, so that nothing is ever flagged.

    >>> share_at_top(np.array([0.1, 0.4, 1.0, 1.0]), 0.2, 1.0), share_at_top(np.array([0.1, 0.4, 0.6, 0.6]), 0.2, 1.0)
    (0.5, 0.0)
    """
    if not len(scores) or not math.isclose(top := float(scores.max()), highest, rel_tol=ROUNDING):
        return 0.0
    at_top = int((scores >= slack.lowest(top)).sum())
    return at_top / len(scores) if at_top >= max(1, most_hits(rate, len(scores) + 1)) else 0.0
