"""An interval for one AUROC and a paired test for two, from DeLong's variance, in O(n log n).

V of a sample is the share of samples of the other kind that it is ordered rightly with, ties counting half;
the AUROC is the mean of V over either kind (DeLong, DeLong and Clarke-Pearson 1988). One sort of all scores
gives every V at once, where the definition compares every pair.

DeLong's variance alone is too small near an AUROC of 1, where the few samples that are ordered wrongly decide it. As Agresti
and Coull (1998) do for a proportion, two samples are added to each kind, one at either end, for the interval only. With 50
against 50, 30 against 200 and 500 against 300 samples and AUROCs of 0.5 to 0.99 the 95 % intervals then held the truth in 93.7
to 100 % of 2000 simulations each, those of differences in 94 to 98 % (``results/interval_coverage.json``).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import check_fraction
from credalens.checks.scores import read_paired_scores, read_sample_scores
from credalens.evaluation.results import TOO_FEW, Comparison, Interval
from credalens.evaluation.statistics.tally import encode, twice_below

METHOD: Final = "delong with extremes"
LEAST: Final = 30
"""With fewer samples of a kind two AUROCs are not compared: the interval would cover less than it says."""
ENDS: Final = (-np.inf, np.inf)


def auroc_interval(id_scores: Any, ood_scores: Any, /, *, level: float = 0.95) -> Interval:
    r"""Confidence interval of the AUROC, by DeLong's variance of the samples and two more of each kind, -inf and inf.

    .. math:: \mathrm{AUROC}' \pm z \sqrt{\mathrm{var}(V'_\mathrm{id}) / n'_\mathrm{id}
              + \mathrm{var}(V'_\mathrm{ood}) / n'_\mathrm{ood}}

    cut at 0 and 1, and widened to hold the AUROC itself; a prime means with the samples added. It holds for few samples and
    where they separate perfectly, and is wide there.

    >>> interval = auroc_interval([0.1, 0.4, 0.2, 0.5], [0.3, 0.9, 0.8, 0.6])
    >>> interval.value, round(interval.low, 3), interval.high
    (0.875, 0.314, 1.0)
    """
    id_scores = read_sample_scores(id_scores, "id_scores", least=2)
    ood_scores = read_sample_scores(ood_scores, "ood_scores", least=2)
    level, value = check_fraction(level, "level"), _wins(id_scores, ood_scores).mean()
    wins = _wins(np.append(id_scores, ENDS), np.append(ood_scores, ENDS))
    margin = _quantile(level) * _deviation(wins, len(wins.of_id), len(wins.of_ood))
    low, high = max(0.0, min(value, wins.mean() - margin)), min(1.0, max(value, wins.mean() + margin))
    return Interval(value, low, high, level, METHOD, len(id_scores), len(ood_scores))


def compare_auroc(id_a: Any, ood_a: Any, id_b: Any, ood_b: Any, /, *, level: float = 0.95) -> Comparison:
    """Paired test of DeLong: do scores a and b, of the same samples, have the same AUROC?

    The variance is that of V_a - V_b, sample by sample, so what both scores find easy or hard cancels. Two samples are added to
    each kind, with plus and minus the largest difference among them. With fewer than 30 samples of a kind nothing is
    claimed: the interval is [-1, 1] and the p-value 1. Differences that are too rare to be among the samples are beyond any
    interval; where every sample has V_a = V_b it is [0, 0].

    >>> rng = np.random.default_rng(0)
    >>> id_scores, ood_scores = rng.normal(size=100), rng.normal(2, size=100)
    >>> result = compare_auroc(id_scores, ood_scores, id_scores, ood_scores + rng.normal(size=100))
    >>> round(result.difference, 3), round(result.p_value, 3)
    (0.058, 0.007)
    """
    id_a, ood_a, id_b, ood_b = read_paired_scores(id_a, ood_a, id_b, ood_b)
    level, sizes = check_fraction(level, "level"), (len(id_a), len(ood_a))
    a, b = _wins(id_a, ood_a), _wins(id_b, ood_b)
    gain = _Wins(a.of_id - b.of_id, a.of_ood - b.of_ood)
    difference, deviation = gain.mean(), _deviation(gain.with_extremes(), *sizes)
    low, high, p_value, method = -1.0, 1.0, 1.0, TOO_FEW
    if min(sizes) >= LEAST:
        margin, p_value, method = _quantile(level) * deviation, _p_value(difference, deviation), METHOD
        low, high = max(-1.0, difference - margin), min(1.0, difference + margin)
    return Comparison("auroc", a.mean(), b.mean(), difference, low, high, level, p_value, method, *sizes)


class _Wins(NamedTuple):
    """Twice the rightly ordered pairs of each sample: integers, so that equal shares have no variance."""

    of_id: NDArray[np.int64]
    of_ood: NDArray[np.int64]

    def mean(self) -> float:
        return int(self.of_ood.sum()) / (2 * len(self.of_id) * len(self.of_ood))

    def with_extremes(self) -> _Wins:
        """Plus and minus the largest of each kind added."""
        return _Wins(*(np.append(wins, np.abs(wins).max() * np.array([1, -1])) for wins in self))


def _deviation(wins: _Wins, n_id: int, n_ood: int) -> float:
    """The standard deviation of the mean, by DeLong, where a sample can win against so many of the other kind."""
    variance_id = np.var(wins.of_id, ddof=1) / (2 * n_ood) ** 2
    variance_ood = np.var(wins.of_ood, ddof=1) / (2 * n_id) ** 2
    return math.sqrt(variance_id / len(wins.of_id) + variance_ood / len(wins.of_ood))


def _wins(id_scores: NDArray[np.float64], ood_scores: NDArray[np.float64]) -> _Wins:
    coded = encode(id_scores, ood_scores)
    below_id, below_ood = (twice_below(counts) for counts in coded.counts())
    return _Wins(2 * len(ood_scores) - below_ood[coded.id_codes], below_id[coded.ood_codes])


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _p_value(difference: float, deviation: float) -> float:
    """Two-sided normal tail; erfc keeps its digits where 1 - cdf would lose them."""
    return 1.0 if difference == 0 else math.erfc(abs(difference) / deviation / math.sqrt(2))
