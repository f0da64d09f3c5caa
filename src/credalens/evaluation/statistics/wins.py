"""Wins of every sample, the building blocks of an AUROC and of DeLong's paired test for one or several OOD data sets.

V of a sample is the share of samples of the other kind that it is ordered rightly with, ties counting half;
the AUROC is the mean of V over either kind (DeLong, DeLong and Clarke-Pearson 1988). One sort of all scores
gives every V at once, where the definition compares every pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.results import Comparison
from credalens.evaluation.statistics.tally import encode, twice_below


class Wins(NamedTuple):
    """Twice the rightly ordered pairs of each sample: integers, so that equal shares have no variance."""

    of_id: NDArray[np.int64]
    of_ood: NDArray[np.int64]

    def mean(self) -> float:
        """The AUROC, from exact integer counts."""
        return int(self.of_ood.sum()) / (2 * len(self.of_id) * len(self.of_ood))

    def minus(self, other: Wins, /) -> Wins:
        """The wins more than another score of the same samples has."""
        return Wins(self.of_id - other.of_id, self.of_ood - other.of_ood)


def wins(id_scores: NDArray, ood_scores: NDArray, /) -> Wins:
    """Count in O(n log n)."""
    coded = encode(id_scores, ood_scores)
    below_id, below_ood = (twice_below(counts) for counts in coded.counts())
    return Wins(2 * len(ood_scores) - below_ood[coded.id_codes], below_id[coded.ood_codes])


def deviation(parts: Sequence[Wins], /) -> float:
    """Standard deviation of the mean AUROC (or difference) over OOD data sets that share their ID samples."""
    n_id = len(parts[0].of_id)
    of_id = np.mean([part.of_id / (2 * len(part.of_ood)) for part in parts], axis=0)
    of_ood = sum(np.var(part.of_ood, ddof=1) / len(part.of_ood) for part in parts) / (2 * n_id * len(parts)) ** 2
    return math.sqrt(np.var(of_id, ddof=1) / n_id + of_ood)


def compare_wins(a: Sequence[Wins], b: Sequence[Wins], /, *, level: float) -> Comparison:
    """Paired test of DeLong: do two scores have the same AUROC, or the same mean AUROC over several OOD data sets?

    The variance is that of V_a - V_b, sample by sample, so what both scores find easy or hard cancels. Where
    that never varies although a and b differ, as with perfect separation against a constant, no normal law
    holds; then Hoeffding's inequality for k = min(n_id, n_ood) disjoint pairs gives a valid, wider answer.
    """
    gains = [one.minus(other) for one, other in zip(a, b, strict=True)]
    n_id, n_ood = len(gains[0].of_id), sum(len(gain.of_ood) for gain in gains)
    mean_a, mean_b, difference = (float(np.mean([part.mean() for part in parts])) for parts in (a, b, gains))
    spread = deviation(gains)
    if spread == 0 and difference != 0:
        pairs = min(n_id, *(len(gain.of_ood) for gain in gains))
        margin, p_value, method = *_hoeffding(difference, pairs, level), "hoeffding"
    else:
        margin, p_value, method = _quantile(level) * spread, _p_value(difference, spread), "delong"
    low, high = max(-1.0, difference - margin), min(1.0, difference + margin)
    return Comparison("auroc", mean_a, mean_b, difference, low, high, level, p_value, method, n_id, n_ood)


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _p_value(difference: float, spread: float) -> float:
    """Two-sided normal tail; erfc keeps its digits where 1 - cdf would lose them."""
    return 1.0 if difference == 0 else math.erfc(abs(difference) / spread / math.sqrt(2))


def _hoeffding(difference: float, pairs: int, level: float) -> tuple[float, float]:
    """Margin and p-value for a mean over independent pairs of a quantity in [-1, 1]."""
    margin = math.sqrt(2 * math.log(2 / (1 - level)) / pairs)
    return margin, min(1.0, 2 * math.exp(-pairs * difference**2 / 2))
