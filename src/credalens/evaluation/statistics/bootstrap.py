"""Intervals and paired tests for any detection metric, by resampling.

ID and OOD samples count as two independent samples of fixed size, so each replicate draws
from both separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import check_count, check_fraction
from credalens.checks.scores import read_paired_scores, read_sample_scores
from credalens.evaluation.statistics.results import Comparison, Interval
from credalens.evaluation.statistics.tally import METRICS, encode

__all__ = ["Metric", "Seed", "bootstrap_difference", "bootstrap_interval"]

Scores = NDArray[np.float64]
Metric = Literal["auroc", "auprc", "auprc_id", "fpr95", "fpr95_id"] | Callable[[Scores, Scores], float]
Seed = int | np.random.Generator
Chosen = NDArray[np.int64]
Measure = Callable[[Chosen, Chosen], float]


def bootstrap_interval(
    metric: Metric,
    id_scores: Any,
    ood_scores: Any,
    /,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: Seed = 0,
) -> Interval:
    """Percentile-bootstrap interval of any detection metric; O(n) a replicate for the named ones.

    ``metric`` is "auroc", "auprc", "auprc_id", "fpr95", "fpr95_id" as in
    :func:`credalens.evaluation.ood_metrics`, or a function of (id_scores, ood_scores). A metric at its limit,
    such as an AUPRC of 1, gets an interval of no width.

    >>> interval = bootstrap_interval("auprc", [0.1, 0.4, 0.2, 0.5], [0.3, 0.9, 0.8, 0.6])
    >>> round(interval.value, 3), round(interval.low, 3), interval.high
    (0.917, 0.75, 1.0)
    """
    id_scores = read_sample_scores(id_scores, "id_scores", least=2)
    ood_scores = read_sample_scores(ood_scores, "ood_scores", least=2)
    sizes = len(id_scores), len(ood_scores)
    measures = [_measure(metric, id_scores, ood_scores)]
    (value,), drawn = _resample(measures, sizes, _enough(replicates, level), seed)
    low, high = _percentiles(drawn[:, 0], level)
    return Interval(value, low, high, float(level), "bootstrap", *sizes)


def bootstrap_difference(
    metric: Metric,
    id_a: Any,
    ood_a: Any,
    id_b: Any,
    ood_b: Any,
    /,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: Seed = 0,
) -> Comparison:
    """Paired bootstrap of metric(a) - metric(b): each replicate draws the same samples for both scores.

    ``metric`` is as in :func:`bootstrap_interval`. The p-value is twice the smaller share of replicates on
    one side of zero, (1 + count) / (1 + replicates), so it is never below 2 / (1 + replicates).

    >>> id_credal, ood_credal = [0.1, 0.2, 0.3, 0.5], [0.4, 0.6, 0.7, 0.9]
    >>> id_mean, ood_mean = [0.1, 0.4, 0.3, 0.5], [0.2, 0.6, 0.3, 0.9]
    >>> result = bootstrap_difference("fpr95", id_credal, ood_credal, id_mean, ood_mean)
    >>> result.a, result.b, result.difference
    (0.25, 0.75, -0.5)
    """
    id_a, ood_a, id_b, ood_b = read_paired_scores(id_a, ood_a, id_b, ood_b)
    sizes = len(id_a), len(ood_a)
    measures = [_measure(metric, id_a, ood_a), _measure(metric, id_b, ood_b)]
    (a, b), drawn = _resample(measures, sizes, _enough(replicates, level), seed)
    differences = drawn[:, 0] - drawn[:, 1]
    low, high = _percentiles(differences, level)
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)
    return Comparison(name, a, b, a - b, low, high, float(level), _p_value(differences), "bootstrap", *sizes)


def _measure(metric: Metric, id_scores: Scores, ood_scores: Scores) -> Measure:
    """The metric as a function of the chosen ID and OOD samples."""
    if callable(metric):
        return lambda i, j: float(metric(id_scores[i], ood_scores[j]))
    if metric not in METRICS:
        raise ValueError(f"metric must be a function or one of {', '.join(METRICS)}; got {metric!r}.")
    of_counts, coded = METRICS[metric], encode(id_scores, ood_scores)
    return lambda i, j: of_counts(coded.count(coded.id_codes[i]), coded.count(coded.ood_codes[j]))


def _resample(
    measures: Sequence[Measure], sizes: tuple[int, int], replicates: int, seed: Seed
) -> tuple[list[float], NDArray[np.float64]]:
    """Every measure on all samples, and on each replicate (replicates, measures)."""
    n_id, n_ood = sizes
    observed = [measure(np.arange(n_id), np.arange(n_ood)) for measure in measures]
    generator = np.random.default_rng(seed)
    drawn = np.empty((replicates, len(measures)))
    for replicate in drawn:
        i, j = generator.integers(n_id, size=n_id), generator.integers(n_ood, size=n_ood)
        replicate[:] = [measure(i, j) for measure in measures]
    if not (np.isfinite(observed).all() and np.isfinite(drawn).all()):
        raise ValueError("the metric gave NaN or an infinity on some replicate; it must be finite on every resample.")
    return observed, drawn


def _enough(replicates: int, level: float) -> int:
    """At least one replicate is expected in each tail."""
    tails = 2 / (1 - check_fraction(level, "level"))
    return check_count(replicates, "replicates", least=round(tails))


def _percentiles(drawn: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _p_value(differences: NDArray[np.float64]) -> float:
    smaller = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (1 + smaller) / (1 + len(differences)))
