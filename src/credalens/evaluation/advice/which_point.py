"""Which point prediction to use, the intersection probability or the mean, by NLL and ECE on labelled data.

The rule: the intersection probability stays unless the mean is clearly better in NLL or ECE and clearly worse in neither;
"clearly" is a paired test with Holm's correction for the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.metrics.calibration import NLL_FLOOR, confidence_bins
from credalens.evaluation.results import ByMethod, Result
from credalens.evaluation.statistics.bootstrap import Resampling, bootstrap_p_value
from credalens.evaluation.statistics.holm import holm
from credalens.evaluation.statistics.paired_mean import PairedMean, paired_mean


@dataclass(frozen=True)
class PointDifference(Result):
    """A metric of the intersection probability minus that of the mean, with its interval; negative is a gain."""

    metric: str
    difference: float
    low: float
    high: float
    p_value: float
    """Two-sided, with Holm's correction for both metrics."""


@dataclass(frozen=True)
class PointChoice(Result):
    """The point prediction to use, and what speaks for it."""

    prediction: Literal["intersection", "mean"]
    nll: PointDifference
    ece: PointDifference


def choose_point(
    points: ByMethod[NDArray],
    correct: ByMethod[NDArray[np.bool_]],
    labels: NDArray,
    /,
    *,
    bins: int,
    resampling: Resampling,
) -> PointChoice:
    """Apply the rule above to probabilities (rows, classes), and whether the class that each names is right."""
    nll = paired_mean(_surprise(points.credal, labels) - _surprise(points.classical, labels), level=resampling.level)
    a, b = (_Binned.of(points.of(method), correct.of(method), bins) for method in points.names)
    ece = _difference_of_errors(a, b, resampling)
    p_values = holm({"NLL": nll.p_value, "ECE": ece.p_value})
    differences = [
        PointDifference(metric, *numbers[:3], p_values[metric]) for metric, numbers in (("NLL", nll), ("ECE", ece))
    ]
    clear = [d.difference for d in differences if d.p_value < 1 - resampling.level]
    worse = bool(clear) and min(clear) > 0
    return PointChoice("mean" if worse else "intersection", *differences)


def _surprise(p: NDArray, labels: NDArray) -> NDArray[np.float64]:
    of_truth = p[np.arange(len(p)), labels].astype(np.float64)
    return -np.log(np.maximum(of_truth, NLL_FLOOR))


@dataclass(frozen=True)
class _Binned:
    """Confidence minus correctness of every input, and the bin of its confidence."""

    gaps: NDArray[np.float64]
    bins: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, p: NDArray, correct: NDArray[np.bool_], count: int) -> _Binned:
        confidence = p.max(axis=-1).astype(np.float64)
        return cls(confidence - correct, confidence_bins(confidence, count)[1], count)

    def error(self, rows: NDArray[np.intp] | slice) -> float:
        gaps = self.gaps[rows]
        return float(np.abs(np.bincount(self.bins[rows], weights=gaps, minlength=self.count)).sum() / len(gaps))


def _difference_of_errors(a: _Binned, b: _Binned, resampling: Resampling) -> PairedMean:
    """By the paired bootstrap, each replicate of the same inputs for both."""
    generator, n = np.random.default_rng(resampling.seed), len(a.gaps)
    drawn = np.empty(resampling.replicates)
    for replicate in range(len(drawn)):
        rows = generator.integers(n, size=n)
        drawn[replicate] = a.error(rows) - b.error(rows)
    low, high = np.quantile(drawn, [(1 - resampling.level) / 2, (1 + resampling.level) / 2])
    observed = a.error(slice(None)) - b.error(slice(None))
    return PairedMean(observed, float(low), float(high), bootstrap_p_value(drawn))
