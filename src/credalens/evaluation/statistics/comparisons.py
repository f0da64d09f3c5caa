"""Intervals and paired tests in closed form: of AUROCs, means and shares, and Holm's correction for several.

The AUROC of one score, or the difference of two, comes from DeLong's variance, in O(n log n).
DeLong's variance alone is too small near an AUROC of 1, where the few samples that are ordered wrongly decide it. As Agresti
and Coull (1998) do for a proportion, two samples are added to each kind, one at either end, for the interval only. With 50
against 50, 30 against 200 and 500 against 300 samples and AUROCs of 0.5 to 0.99 the 95 % intervals then held the truth in 94.9
to 100 % of 10,000 simulations each, those of differences in 93.5 to 97.5 % (``results/interval_coverage.json``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import read_paired_scores, read_sample_scores
from credalens.checks.options import check_fraction
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.statistics.counts import METHOD, compare_wins, quantile, two_sided, wins
from credalens.guard.binomial import binomial_interval, binomial_tail

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
    level, value = check_fraction(level, "level"), wins(id_scores, ood_scores).mean()
    extended = wins(np.append(id_scores, ENDS), np.append(ood_scores, ENDS))
    middle, margin = extended.mean(), quantile(level) * extended.deviation()
    low, high = max(0.0, min(value, middle - margin)), min(1.0, max(value, middle + margin))
    return Interval(value, low, high, level, METHOD, len(id_scores), len(ood_scores))


def compare_auroc(id_a: Any, ood_a: Any, id_b: Any, ood_b: Any, /, *, level: float = 0.95) -> Comparison:
    """Paired test of DeLong: do scores a and b, of the same samples, have the same AUROC?

    What both scores find easy or hard cancels in the variance. With fewer than 30 samples of a kind nothing is claimed: the
    interval is [-1, 1] and the p-value 1. Where no sample tells the scores apart the interval is [0, 0].

    >>> rng = np.random.default_rng(0)
    >>> id_scores, ood_scores = rng.normal(size=100), rng.normal(2, size=100)
    >>> result = compare_auroc(id_scores, ood_scores, id_scores, ood_scores + rng.normal(size=100))
    >>> round(result.difference, 3), round(result.p_value, 3)
    (0.058, 0.007)
    """
    id_a, ood_a, id_b, ood_b = read_paired_scores(id_a, ood_a, id_b, ood_b)
    return compare_wins([wins(id_a, ood_a)], [wins(id_b, ood_b)], level=check_fraction(level, "level"))


class PairedMean(NamedTuple):
    """A mean difference, the ends of its interval, and the two-sided p-value of "no difference"."""

    difference: float
    low: float
    high: float
    p_value: float


def paired_mean(differences: NDArray[np.float64], /, *, level: float) -> PairedMean:
    """Of one difference for each input.

    >>> paired_mean(np.array([0.0, 1.0, 1.0, 2.0]), level=0.95).difference
    1.0
    """
    mean, spread = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(differences))
    margin = quantile(level) * spread
    return PairedMean(mean, mean - margin, mean + margin, two_sided(mean, spread))


def paired_share(a: NDArray[np.bool_], b: NDArray[np.bool_], /, *, level: float) -> PairedMean:
    r"""Of how often a and b are true for the same inputs, by McNemar's exact test.

    Of the m inputs for which only one of them is true, the number k for which it is a is binomial with probability
    :math:`\tfrac12` where both shares are the same, so that no small number of inputs makes the test wrong too often. The
    interval :math:`(2 \theta - 1) m / n`, with that of Clopper and Pearson for :math:`\theta`, takes m as given; it is
    widened to hold the normal one, and the p-value is the larger of the two.

    >>> [round(x, 3) for x in paired_share(np.arange(20) < 18, np.arange(20) < 12, level=0.95)]
    [0.3, 0.024, 0.506, 0.031]
    """
    normal = paired_mean(a.astype(np.float64) - b, level=level)
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    if (either := only_a + only_b) == 0:
        return normal
    low, high = ((2 * theta - 1) * either / len(a) for theta in binomial_interval(only_a, either, level=level))
    exact = min(1.0, 2 * binomial_tail(min(only_a, only_b), either, 0.5))
    return PairedMean(normal.difference, min(low, normal.low), max(high, normal.high), max(exact, normal.p_value))


def holm(p_values: Mapping[str, float], /) -> dict[str, float]:
    r"""Adjusted p-values: one below 0.05 is wrong in at most 5 % of all families of comparisons.

    .. math:: \tilde p_{(i)} = \min\big(1, \max_{j \le i} (m - j + 1)\, p_{(j)}\big), \quad p_{(1)} \le \ldots \le p_{(m)}

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    adjusted, largest = {}, 0.0
    for place, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, (len(p_values) - place) * p_values[name])
        adjusted[name] = min(1.0, largest)
    return {name: adjusted[name] for name in p_values}
