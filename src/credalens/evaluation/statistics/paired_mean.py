"""The mean difference of two quantities on the same inputs, and of two shares, with its interval."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.statistics.wins import quantile, two_sided
from credalens.guard.binomial import binomial_interval, binomial_tail


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
