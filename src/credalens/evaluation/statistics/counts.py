"""Detection metrics as functions of counts: how many ID and OOD samples share each distinct score.

Counting first makes every metric safe at ties, exact in integers where it can be, and cheap to resample:
after one sort, a bootstrap replicate costs O(n). All functions take (id counts, OOD counts) in order of
rising score.

Wins of every sample are what an AUROC is made of.
V of a sample is the share of samples of the other kind that it is ordered rightly with, ties counting half;
the AUROC is the mean of V over either kind (DeLong, DeLong and Clarke-Pearson 1988). One sort of all scores
gives every V at once, where the definition compares every pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.results import TOO_FEW, Comparison

Counts = NDArray[np.int64]
CountMetric = Callable[[Counts, Counts], float]


@dataclass(frozen=True, eq=False)
class Coded:
    """Scores replaced by their place among the distinct values."""

    values: NDArray[np.float64]
    id_codes: NDArray[np.intp]
    ood_codes: NDArray[np.intp]

    def counts(self) -> tuple[Counts, Counts]:
        """How many ID and how many OOD samples have each value."""
        return self.count(self.id_codes), self.count(self.ood_codes)

    def count(self, codes: NDArray[np.intp]) -> Counts:
        """How often each value occurs among ``codes``."""
        return np.bincount(codes, minlength=len(self.values))


def encode(id_scores: NDArray[np.float64], ood_scores: NDArray[np.float64], /) -> Coded:
    """Sort once, O(n log n)."""
    values, codes = np.unique(np.concatenate([id_scores, ood_scores]), return_inverse=True)
    return Coded(values, codes[: len(id_scores)], codes[len(id_scores) :])


def flagged(counts: Counts, /) -> Counts:
    """Samples at or above each distinct score, from the highest score down."""
    return np.cumsum(counts[::-1])


def twice_below(counts: Counts, /) -> Counts:
    """Twice the number of samples below each distinct score, those equal to it counting half."""
    return 2 * np.cumsum(counts) - counts


def auroc(id_counts: Counts, ood_counts: Counts, /) -> float:
    """P(OOD score > ID score) + P(equal) / 2, from exact integer counts."""
    return int(ood_counts @ twice_below(id_counts)) / (2 * int(id_counts.sum()) * int(ood_counts.sum()))


def auprc(id_counts: Counts, ood_counts: Counts, /) -> float:
    """Average precision with OOD positive."""
    hits, alarms = flagged(ood_counts), flagged(id_counts + ood_counts)
    return float(ood_counts[::-1] @ (hits / np.maximum(alarms, 1)) / hits[-1])


def fpr95(id_counts: Counts, ood_counts: Counts, /, *, tpr: float = 0.95) -> float:
    """Share of ID flagged at the highest threshold that flags at least ``tpr`` of OOD."""
    hits, false_alarms = flagged(ood_counts), flagged(id_counts)
    # hits / total is the correctly rounded quotient, so 19 of 20 does reach 0.95.
    at = int(np.argmax(hits / hits[-1] >= tpr))
    return float(false_alarms[at] / false_alarms[-1])


def with_id_positive(metric: CountMetric, /) -> CountMetric:
    """The same metric when ID is the positive class and scores are negated."""
    return lambda id_counts, ood_counts: metric(ood_counts[::-1], id_counts[::-1])


METRICS: dict[str, CountMetric] = {
    "auroc": auroc,
    "auprc": auprc,
    "auprc_id": with_id_positive(auprc),
    "fpr95": fpr95,
    "fpr95_id": with_id_positive(fpr95),
}


METHOD: Final = "delong with extremes"
LEAST: Final = 30
"""With fewer samples of a kind two AUROCs are not compared: the interval would cover less than it says."""


class Wins(NamedTuple):
    """Twice the rightly ordered pairs of each sample: integers, so that equal shares have no variance."""

    of_id: NDArray[np.int64]
    of_ood: NDArray[np.int64]

    def mean(self) -> float:
        """The AUROC, from exact integer counts."""
        return int(self.of_ood.sum()) / (2 * len(self.of_id) * len(self.of_ood))

    def deviation(self) -> float:
        """The standard deviation of the mean, by DeLong."""
        of_id, of_ood = self.of_id / (2 * len(self.of_ood)), self.of_ood / (2 * len(self.of_id))
        return math.sqrt(_variance_of_mean(of_id) + _variance_of_mean(of_ood))

    def minus(self, other: Wins, /) -> Wins:
        """The wins more than another score of the same samples has."""
        return Wins(self.of_id - other.of_id, self.of_ood - other.of_ood)


def wins(id_scores: NDArray, ood_scores: NDArray, /) -> Wins:
    """Count in O(n log n)."""
    coded = encode(id_scores, ood_scores)
    below_id, below_ood = (twice_below(counts) for counts in coded.counts())
    return Wins(2 * len(ood_scores) - below_ood[coded.id_codes], below_id[coded.ood_codes])


def compare_wins(a: Sequence[Wins], b: Sequence[Wins], /, *, level: float) -> Comparison:
    """Do two scores have the same AUROC, or the same mean AUROC over several OOD data sets with the same ID samples?

    The variance is that of V_a - V_b, sample by sample, so what both scores find easy or hard cancels. Two samples are added to
    each kind, with plus and minus the largest difference among them. With fewer than 30 samples of a kind nothing is
    claimed: the interval is [-1, 1] and the p-value 1. Differences that are too rare to be among the samples are beyond any
    interval; where every sample has V_a = V_b it is [0, 0].
    """
    gains = [one.minus(other) for one, other in zip(a, b, strict=True)]
    mean_a, mean_b, difference = (float(np.mean([part.mean() for part in parts])) for parts in (a, b, gains))
    n_id, sizes = len(gains[0].of_id), [len(gain.of_ood) for gain in gains]
    low, high, p_value, method = -1.0, 1.0, 1.0, TOO_FEW
    if min(n_id, *sizes) >= LEAST:
        spread = _deviation_of_gains(gains)
        margin, p_value, method = quantile(level) * spread, two_sided(difference, spread), METHOD
        low, high = max(-1.0, difference - margin), min(1.0, difference + margin)
    return Comparison("auroc", mean_a, mean_b, difference, low, high, level, p_value, method, n_id, sum(sizes))


def _deviation_of_gains(gains: Sequence[Wins]) -> float:
    of_id = np.mean([gain.of_id / (2 * len(gain.of_ood)) for gain in gains], axis=0)
    of_ood = [_variance_of_mean(_with_extremes(gain.of_ood / (2 * len(gain.of_id)))) for gain in gains]
    return math.sqrt(_variance_of_mean(_with_extremes(of_id)) + sum(of_ood) / len(gains) ** 2)


def _with_extremes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(values, np.abs(values).max() * np.array([1, -1]))


def _variance_of_mean(values: NDArray[np.float64]) -> float:
    return float(np.var(values, ddof=1)) / len(values)


def quantile(level: float, /) -> float:
    """How many standard deviations an interval of this level reaches to either side."""
    return NormalDist().inv_cdf((1 + level) / 2)


def two_sided(difference: float, spread: float, /) -> float:
    """The p-value of a difference with a normal law; erfc keeps its digits where 1 - cdf would lose them."""
    if difference == 0 or spread == 0:
        return float(difference == 0)
    return math.erfc(abs(difference) / spread / math.sqrt(2))
