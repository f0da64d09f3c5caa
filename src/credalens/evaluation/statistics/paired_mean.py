"""The mean difference of two quantities on the same inputs, with its normal interval."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.statistics.wins import quantile, two_sided


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
