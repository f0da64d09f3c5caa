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

CHUNK = 256  # scores that are compared pair by pair
STEP = 1.05  # from one count of the margin's grid to the next


class RankedScores:
    r"""The p-value of each score among all scores so far, which joins them: independent and uniform while exchangeable.

    .. math:: p = (|\{i : s_i > s\}| + \theta (|\{i : s_i = s\}| + 1)) / (n + 1), \quad \theta \sim U(0, 1]

    Scores lie in sorted blocks, each less than half as long as the one before: O(log n) merges per score.
    """

    def __init__(self, scores: NDArray[np.float64]) -> None:
        self._blocks = [np.sort(scores)]

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """What to make it of again: all scores so far."""
        return {"scores": np.sort(np.concatenate(self._blocks))}

    def p_values(self, scores: NDArray[np.float64], theta: NDArray[np.float64], /) -> NDArray[np.float64]:
        """The p-values of ``scores`` in their order; ``theta`` breaks ties."""
        parts = range(0, len(scores), CHUNK)
        return np.concatenate([self._chunk(scores[i : i + CHUNK], theta[i : i + CHUNK]) for i in parts])

    def _chunk(self, scores: NDArray, theta: NDArray) -> NDArray[np.float64]:
        earlier = np.tri(len(scores), k=-1, dtype=bool)
        above = (earlier & (scores > scores[:, None])).sum(axis=1)
        equal = (earlier & (scores == scores[:, None])).sum(axis=1)
        n = sum(map(len, self._blocks)) + np.arange(len(scores))
        for block in self._blocks:
            low, high = (np.searchsorted(block, scores, side) for side in ("left", "right"))
            above, equal = above + (len(block) - high), equal + (high - low)
        self._insert(np.sort(scores))
        return (above + theta * (equal + 1)) / (n + 1)

    def _insert(self, block: NDArray) -> None:
        while self._blocks and len(self._blocks[-1]) <= 2 * len(block):
            block = np.sort(np.concatenate([self._blocks.pop(), block]), kind="stable")  # merges sorted runs
        self._blocks.append(block)


@dataclass(frozen=True, eq=False)
class FixedReference:
    r"""Upper bounds of P(S >= s) that hold for all s at once with probability 1 - delta over the calibration scores.

    For counts k on a geometric grid, the exact binomial upper limit at delta / K of a share of k in n bounds P(S >= s) for
    every s with at most k calibration scores at or above it. A bet that decreases in p gains less with a bound than with p.

    :ivar thresholds: rising; score number ``k`` from the top for each k of the grid.
    :ivar bounds: one more, falling: the p-value of scores above j thresholds is ``bounds[j]``.
    """

    thresholds: NDArray[np.float64]
    bounds: NDArray[np.float64]

    @classmethod
    def of(cls, scores: NDArray[np.float64], delta: float, /) -> FixedReference:
        """The reference of calibration scores."""
        from_top = np.sort(scores)[::-1][list(grid_counts(len(scores)))]
        return cls(from_top[::-1], np.array([1.0, *upper_limits(len(scores), delta)[::-1]]))

    @staticmethod
    def least(delta: float, /) -> int:
        """How many calibration scores are needed for a bet to win at all: the lowest bound is below 1 / e."""
        return next(n for n in count(1) if upper_limits(n, delta)[0] < 1 / math.e)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """What to make it of again."""
        return vars(self)

    def p_values(self, scores: NDArray[np.float64], /) -> NDArray[np.float64]:
        """The bound for each score: that of the smallest count k with fewer than k + 1 calibration scores at or above it."""
        return self.bounds[np.searchsorted(self.thresholds, scores, "left")]


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
