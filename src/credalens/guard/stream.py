r"""Evidence of drift in a stream of scores: p-values that a betting player may rely on, and the wealth of the player.

Judged against a fixed calibration set alone, p-values are not uniform given that set, and a martingale on them passes every
bound sooner or later, drift or not. Sound are ranks among all scores so far, and a fixed reference with a margin.

A bet :math:`f_e(p) = e p^{e-1}` integrates to one, hence wealth that is multiplied by it is a martingale while p-values are
independent and uniform. The player holds a mixture over bets e and over the input t at which to begin:

.. math:: M_n = W_n + \sum_{t \le n} w_t \frac1E \sum_e \prod_{i=t}^n f_e(p_i), \quad
          W_t = \frac1{1 + \ln(1 + t)}, \quad w_t = W_{t-1} - W_t

Without the mixture over beginnings all wealth is lost on a long stream without drift, and a late drift is noticed late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.guard.binomial import upper_bound
from credalens.guard.rounding import Slack

CHUNK = 256  # scores that are compared pair by pair
STEP = 1.05  # from one count of the margin's grid to the next
CELL = 4.0  # tolerances: a value is at least one of them away from the border of its cell, on one of two grids
FARTHEST = 2.0**50  # place that can be told from its neighbours


class RankedScores:
    r"""A p-value of each score among all scores so far, which joins them: no smaller than an independent, uniform one.

    .. math:: p = (|\{i : s_i > s\}| + \theta (|\{i : s_i = s\}| + 1)) / (n + 1), \quad \theta \sim U(0, 1]

    Scores are compared on a grid, so that those equal but for rounding are ties. A value on the border of two cells would be
    torn apart by rounding; so there are two grids, half a cell apart, and the larger p-value counts. While scores are
    exchangeable that of either grid is independent and uniform, and bets on the larger one win no more.

    Scores lie in sorted blocks, each less than half as long as the one before: O(log n) merges per score.

    :ivar tolerance: what rounding explains of a score, relative to one and the score.
    """

    def __init__(self, places: NDArray[np.float64], tolerance: float) -> None:
        self.tolerance = tolerance
        self._blocks = [np.sort(places)]

    @classmethod
    def of(cls, scores: NDArray[np.float64], tolerance: float, /) -> RankedScores:
        """The ranks of calibration scores."""
        return cls(_places(scores, tolerance), tolerance)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays to restore it from: where all scores so far lie, in cells of the grid."""
        return {"places": np.sort(np.concatenate(self._blocks))}

    def p_values(self, scores: NDArray[np.float64], theta: NDArray[np.float64], /) -> NDArray[np.float64]:
        """The p-values of ``scores`` in their order; ``theta`` breaks ties."""
        parts = range(0, len(scores), CHUNK)
        places = _places(scores, self.tolerance)
        return np.concatenate([self._chunk(places[i : i + CHUNK], theta[i : i + CHUNK]) for i in parts])

    def _chunk(self, places: NDArray, theta: NDArray) -> NDArray[np.float64]:
        n = sum(map(len, self._blocks)) + np.arange(len(places))
        on_grids = [self._ranks(places, np.floor(places + half) - half, theta) for half in (0.0, 0.5)]
        self._insert(np.sort(places))
        ranks: NDArray[np.float64] = np.maximum(*on_grids)
        return ranks / (n + 1)

    def _ranks(self, places: NDArray, low: NDArray, theta: NDArray) -> NDArray[np.float64]:
        """How many lie above the cell that begins at ``low``, and a part of those in it."""
        high = low + 1
        earlier = np.tri(len(places), k=-1, dtype=bool)
        above = (earlier & (places >= high[:, None])).sum(axis=1)
        upto = (earlier & (places >= low[:, None])).sum(axis=1)
        for block in self._blocks:
            above = above + len(block) - np.searchsorted(block, high, "left")
            upto = upto + len(block) - np.searchsorted(block, low, "left")
        return above + theta * (upto - above + 1)

    def _insert(self, block: NDArray) -> None:
        while self._blocks and len(self._blocks[-1]) <= 2 * len(block):
            block = np.sort(np.concatenate([self._blocks.pop(), block]), kind="stable")  # merges sorted runs
        self._blocks.append(block)


def _places(scores: NDArray, tolerance: float) -> NDArray[np.float64]:
    """Where scores lie, in cells of a grid that are four tolerances wide; they grow with the score, as rounding does."""
    logs = np.sign(scores) * np.log1p(np.abs(scores))
    return np.clip(logs / (CELL * tolerance), -FARTHEST, FARTHEST)


@dataclass(frozen=True, eq=False)
class FixedReference:
    r"""Upper bounds of P(S >= s) that hold for all s at once with probability 1 - delta over the calibration scores.

    For counts k on a geometric grid, the exact binomial upper limit at delta / K of a share of k in n bounds P(S >= s) for
    every s with at most k calibration scores at or above it. A bet that decreases in p gains less with a bound than with p.

    :ivar thresholds: rising; score number ``k`` from the top for each k of the grid.
    :ivar bounds: one more, falling: the p-value of scores above j thresholds is ``bounds[j]``.
    :ivar tolerance: what rounding explains of a score, relative to one and the score.
    """

    thresholds: NDArray[np.float64]
    bounds: NDArray[np.float64]
    tolerance: float

    @classmethod
    def of(cls, scores: NDArray[np.float64], delta: float, tolerance: float, /) -> FixedReference:
        """The reference of calibration scores."""
        from_top = np.sort(scores)[::-1][list(grid_counts(len(scores)))]
        return cls(from_top[::-1], np.array([1.0, *upper_limits(len(scores), delta)[::-1]]), tolerance)

    @staticmethod
    def least(delta: float, /) -> int:
        """How many calibration scores are needed for a bet to win at all: the lowest bound is below 1 / e."""
        return next(n for n in count(1) if upper_limits(n, delta)[0] < 1 / math.e)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays to restore it from."""
        return {"thresholds": self.thresholds, "bounds": self.bounds}

    def p_values(self, scores: NDArray[np.float64], /) -> NDArray[np.float64]:
        """The bound for each score: that of the smallest count k with fewer than k + 1 calibration scores at or above it."""
        lowest = Slack(self.tolerance, self.tolerance).lowest(scores)
        return self.bounds[np.searchsorted(self.thresholds, lowest, "left")]


def grid_counts(n: int, /) -> tuple[int, ...]:
    """0, 1, 2, ... and then steps of a twentieth, below n."""
    counts, k = [], 0
    while k < n:
        counts.append(k)
        k = max(k + 1, math.floor(STEP * k))
    return tuple(counts)


@cache
def upper_limits(n: int, delta: float, /) -> tuple[float, ...]:
    """Limits for all counts of the grid that hold together with probability 1 - delta."""
    counts = grid_counts(n)
    return tuple(upper_bound(k, n, level=1 - delta / len(counts)) for k in counts)


BETS: Final = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)  # the exponents e, from strong drifts to weak ones


@dataclass(frozen=True, eq=False)
class Wealth:
    r"""The wealth after ``count`` p-values, in logarithms.

    :ivar growth: for each bet :math:`L = \sum_i \ln f_e(p_i)`.
    :ivar stakes: for each bet :math:`\ln \sum_t w_t e^{-L_{t-1}} / E`, so that growth + stakes is the wealth in it.
    """

    count: int
    growth: NDArray[np.float64]
    stakes: NDArray[np.float64]

    @classmethod
    def start(cls) -> Wealth:
        """Before any bet: the wealth is one."""
        return cls(0, np.zeros(len(BETS)), np.full(len(BETS), -np.inf))

    def after(self, p_values: NDArray[np.float64], /) -> tuple[Wealth, NDArray[np.float64]]:
        """The wealth after more p-values (n,) in (0, 1], and the logarithm of its value after each of them.

        Sums run in the order of the stream, hence p-values one at a time or in batches give the same bits.
        """
        e, t = np.array(BETS), self.count + np.arange(1.0, len(p_values) + 1)
        gains = np.log(e) + (e - 1) * np.log(p_values)[:, None]
        growth = np.add.accumulate(np.concatenate([self.growth[None], gains]))
        begun = _log_begun(t)[:, None] - np.log(len(BETS)) - growth[:-1]
        stakes = np.logaddexp.accumulate(np.concatenate([self.stakes[None], begun]))
        values = np.logaddexp(np.logaddexp.reduce(growth[1:] + stakes[1:], axis=1), _log_kept(t))
        return Wealth(self.count + len(p_values), growth[-1], stakes[-1]), values


def _log_kept(t: NDArray) -> NDArray:
    """The logarithm of W_t: what is kept for beginnings after t."""
    return -np.log1p(np.log1p(t))


def _log_begun(t: NDArray) -> NDArray:
    """The logarithm of w_t, written without a difference of almost equal numbers."""
    return np.log(np.log1p(1 / t)) + _log_kept(t - 1) + _log_kept(t)
