"""An interval for one AUROC and a paired test for two, from DeLong's variance, in O(n log n).

DeLong's variance alone is too small near an AUROC of 1, where the few samples that are ordered wrongly decide it. As Agresti
and Coull (1998) do for a proportion, two samples are added to each kind, one at either end, for the interval only. With 50
against 50, 30 against 200 and 500 against 300 samples and AUROCs of 0.5 to 0.99 the 95 % intervals then held the truth in 94.9
to 100 % of 10,000 simulations each, those of differences in 93.5 to 97.5 % (``results/interval_coverage.json``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from credalens.checks.options import check_fraction
from credalens.checks.scores import read_paired_scores, read_sample_scores
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.statistics.wins import METHOD, compare_wins, quantile, wins

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
