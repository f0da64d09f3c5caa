"""DeLong's interval for one AUROC and paired test for two, in O(n log n).

V of a sample is the share of samples of the other kind that it is ordered rightly with, ties counting half;
the AUROC is the mean of V over either kind (DeLong, DeLong and Clarke-Pearson 1988). One sort of all scores
gives every V at once, where the definition compares every pair.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import check_choice, check_fraction
from credalens.checks.scores import read_paired_scores, read_sample_scores
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.statistics.bootstrap import Seed, bootstrap_interval
from credalens.evaluation.statistics.tally import encode, twice_below


def auroc_interval(
    id_scores: Any,
    ood_scores: Any,
    /,
    *,
    level: float = 0.95,
    method: Literal["delong", "bootstrap"] = "delong",
    replicates: int = 1000,
    seed: Seed = 0,
) -> Interval:
    r"""Confidence interval of the AUROC, by DeLong's variance or by the percentile bootstrap.

    .. math:: \mathrm{AUROC} \pm z \sqrt{\mathrm{var}(V_\mathrm{id}) / n_\mathrm{id}
              + \mathrm{var}(V_\mathrm{ood}) / n_\mathrm{ood}}

    cut at 0 and 1. Where the samples separate perfectly both methods would claim [1, 1]. Then the bound from
    k = min(n_id, n_ood) disjoint pairs, all of them in the right order, is given: AUROC >= (1 - level)^(1/k).

    >>> interval = auroc_interval([0.1, 0.4, 0.2, 0.5], [0.3, 0.9, 0.8, 0.6])
    >>> interval.value, round(interval.low, 3), interval.high
    (0.875, 0.592, 1.0)
    """
    used = check_choice(method, ("delong", "bootstrap"), "method")
    id_scores = read_sample_scores(id_scores, "id_scores", least=2)
    ood_scores = read_sample_scores(ood_scores, "ood_scores", least=2)
    level, sizes = check_fraction(level, "level"), (len(id_scores), len(ood_scores))
    wins = _wins(id_scores, ood_scores)
    value, margin = wins.mean(), _quantile(level) * wins.deviation()
    if value in (0.0, 1.0):
        margin, used = 1 - (1 - level) ** (1 / min(sizes)), "disjoint pairs"
    elif method == "bootstrap":
        return bootstrap_interval("auroc", id_scores, ood_scores, level=level, replicates=replicates, seed=seed)
    return Interval(value, max(0.0, value - margin), min(1.0, value + margin), level, used, *sizes)


def compare_auroc(id_a: Any, ood_a: Any, id_b: Any, ood_b: Any, /, *, level: float = 0.95) -> Comparison:
    """Paired test of DeLong: do scores a and b, of the same samples, have the same AUROC?

    The variance is that of V_a - V_b, sample by sample, so what both scores find easy or hard cancels. Where
    that never varies although a and b differ, as with perfect separation against a constant, no normal law
    holds; then Hoeffding's inequality for k = min(n_id, n_ood) disjoint pairs gives a valid, wider answer.

    >>> id_credal, ood_credal = [0.1, 0.2, 0.3, 0.5], [0.4, 0.6, 0.7, 0.9]
    >>> id_mean, ood_mean = [0.1, 0.4, 0.3, 0.5], [0.2, 0.6, 0.3, 0.9]
    >>> result = compare_auroc(id_credal, ood_credal, id_mean, ood_mean)
    >>> round(result.difference, 3), round(result.p_value, 3)
    (0.281, 0.151)
    """
    id_a, ood_a, id_b, ood_b = read_paired_scores(id_a, ood_a, id_b, ood_b)
    level, sizes = check_fraction(level, "level"), (len(id_a), len(ood_a))
    a, b = _wins(id_a, ood_a), _wins(id_b, ood_b)
    gain = _Wins(a.of_id - b.of_id, a.of_ood - b.of_ood)
    difference, deviation = gain.mean(), gain.deviation()
    if deviation == 0 and difference != 0:
        margin, p_value, method = *_hoeffding(difference, min(sizes), level), "hoeffding"
    else:
        margin, p_value, method = _quantile(level) * deviation, _p_value(difference, deviation), "delong"
    low, high = max(-1.0, difference - margin), min(1.0, difference + margin)
    return Comparison("auroc", a.mean(), b.mean(), difference, low, high, level, p_value, method, *sizes)


class _Wins(NamedTuple):
    """Twice the rightly ordered pairs of each sample: integers, so that equal shares have no variance."""

    of_id: NDArray[np.int64]
    of_ood: NDArray[np.int64]

    def mean(self) -> float:
        return int(self.of_ood.sum()) / (2 * len(self.of_id) * len(self.of_ood))

    def deviation(self) -> float:
        n_id, n_ood = len(self.of_id), len(self.of_ood)
        variance_id = np.var(self.of_id, ddof=1) / (2 * n_ood) ** 2
        variance_ood = np.var(self.of_ood, ddof=1) / (2 * n_id) ** 2
        return math.sqrt(variance_id / n_id + variance_ood / n_ood)


def _wins(id_scores: NDArray[np.float64], ood_scores: NDArray[np.float64]) -> _Wins:
    coded = encode(id_scores, ood_scores)
    below_id, below_ood = (twice_below(counts) for counts in coded.counts())
    return _Wins(2 * len(ood_scores) - below_ood[coded.id_codes], below_id[coded.ood_codes])


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _p_value(difference: float, deviation: float) -> float:
    """Two-sided normal tail; erfc keeps its digits where 1 - cdf would lose them."""
    return 1.0 if difference == 0 else math.erfc(abs(difference) / deviation / math.sqrt(2))


def _hoeffding(difference: float, pairs: int, level: float) -> tuple[float, float]:
    """Margin and p-value for a mean over independent pairs of a quantity in [-1, 1]."""
    margin = math.sqrt(2 * math.log(2 / (1 - level)) / pairs)
    return margin, min(1.0, 2 * math.exp(-pairs * difference**2 / 2))
