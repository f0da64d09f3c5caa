"""A point prediction judged on every labelled input, and two of them compared on the same inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.metrics.calibration import NLL_FLOOR, confidence_bins
from credalens.evaluation.statistics.bootstrap import Resampling, bootstrap_p_value
from credalens.evaluation.statistics.paired_mean import PairedMean, paired_mean, paired_share
from credalens.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Of every input, (rows,): its label, whether the class named is right, how sure, and -ln p(label)."""

    labels: NDArray[np.int64]
    correct: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    surprise: NDArray[np.float64]

    __repr__ = short_repr

    @classmethod
    def of(cls, probs: NDArray, labels: NDArray, predicted: NDArray, /) -> JudgedRows:
        """Of probabilities (rows, classes) and the classes that they name."""
        of_label = probs[np.arange(len(probs)), labels].astype(np.float64)
        surprise = -np.log(np.maximum(of_label, NLL_FLOOR))
        return cls(labels, predicted == labels, probs.max(axis=-1).astype(np.float64), surprise)


def paired_accuracy(a: JudgedRows, b: JudgedRows, /, *, level: float) -> PairedMean:
    """The accuracy of a minus that of b."""
    return paired_share(a.correct, b.correct, level=level)


def paired_nll(a: JudgedRows, b: JudgedRows, /, *, level: float) -> PairedMean:
    """The NLL of a minus that of b."""
    return paired_mean(a.surprise - b.surprise, level=level)


def paired_ece(a: JudgedRows, b: JudgedRows, /, *, bins: int, resampling: Resampling) -> PairedMean:
    """The ECE of a minus that of b, by the paired bootstrap: each replicate draws the same inputs for both."""
    generator, n = np.random.default_rng(resampling.seed), len(a.labels)
    errors = [_Binned.of(rows, bins) for rows in (a, b)]
    drawn = np.empty(resampling.replicates)
    for replicate in range(len(drawn)):
        rows = generator.integers(n, size=n)
        drawn[replicate] = errors[0].ece(rows) - errors[1].ece(rows)
    low, high = np.quantile(drawn, [(1 - resampling.level) / 2, (1 + resampling.level) / 2])
    observed = errors[0].ece(slice(None)) - errors[1].ece(slice(None))
    return PairedMean(observed, float(low), float(high), bootstrap_p_value(drawn))


@dataclass(frozen=True)
class _Binned:
    """Confidence minus correctness of every input, and the bin of its confidence."""

    gaps: NDArray[np.float64]
    bins: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, rows: JudgedRows, count: int) -> _Binned:
        return cls(rows.confidence - rows.correct, confidence_bins(rows.confidence, count)[1], count)

    def ece(self, rows: NDArray[np.intp] | slice) -> float:
        gaps = self.gaps[rows]
        return float(np.abs(np.bincount(self.bins[rows], weights=gaps, minlength=self.count)).sum() / len(gaps))
