"""Detection metrics as functions of counts: how many ID and OOD samples share each distinct score.

Counting first makes every metric safe at ties, exact in integers where it can be, and cheap to resample:
after one sort, a bootstrap replicate costs O(n). All functions take (id counts, OOD counts) in order of
rising score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
