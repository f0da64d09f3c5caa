r"""p-values of a stream of scores that a betting player may rely on, however long the stream is.

Judged against a fixed calibration set alone, p-values are not uniform given that set, and a martingale on them passes every
bound sooner or later, drift or not. Sound are ranks among all scores so far, and a fixed reference with a margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import count

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
