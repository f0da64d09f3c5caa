"""Intervals and paired tests for any detection metric, by resampling.

ID and OOD samples count as two independent samples of fixed size, so each replicate draws
from both separately. All scores and metrics share the draws: ten intervals cost little more than one, and differences
are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import read_paired_scores, read_sample_scores
from credalens.checks.options import check_count, check_fraction
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.statistics.counts import METRICS, encode

Scores = NDArray[np.float64]
Metric = Literal["auroc", "auprc", "auprc_id", "fpr95", "fpr95_id"] | Callable[[Scores, Scores], float]
Seed = int | np.random.Generator
Choice = NDArray[np.int64] | slice


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
    """Percentile-bootstrap interval of any detection metric; O(n) per replicate for the named ones.

    ``metric`` is "auroc", "auprc", "auprc_id", "fpr95", "fpr95_id" as in
    :func:`credalens.evaluation.ood_metrics`, or a function of (id_scores, ood_scores). A metric at its limit,
    such as an AUPRC of 1, gets an interval of no width.

    >>> interval = bootstrap_interval("auprc", [0.1, 0.4, 0.2, 0.5], [0.3, 0.9, 0.8, 0.6])
    >>> round(interval.value, 3), round(interval.low, 3), interval.high
    (0.917, 0.75, 1.0)
    """
    id_scores = read_sample_scores(id_scores, "id_scores", least=2)
    ood_scores = read_sample_scores(ood_scores, "ood_scores", least=2)
    resampled = resample({"score": (id_scores, ood_scores)}, [metric], Resampling(level, replicates, seed))
    return resampled.interval("score", metric)


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
    resampled = resample({"a": (id_a, ood_a), "b": (id_b, ood_b)}, [metric], Resampling(level, replicates, seed))
    return resampled.difference("a", "b", metric)


@dataclass(frozen=True)
class Resampling:
    """Level of every interval, and how the bootstrap draws: at least one replicate is expected in each tail."""

    level: float = 0.95
    replicates: int = 300
    seed: Seed = 0

    def __post_init__(self) -> None:
        tails = 2 / (1 - check_fraction(self.level, "level"))
        check_count(self.replicates, "replicates", least=round(tails))


@dataclass(frozen=True, eq=False)
class Resampled:
    """Metrics of scores on all samples, and on every replicate: (score, metric) -> (replicates,)."""

    observed: dict[tuple[str, Metric], float]
    drawn: dict[tuple[str, Metric], NDArray[np.float64]]
    level: float
    sizes: tuple[int, int]

    def interval(self, score: str, metric: Metric, /) -> Interval:
        """Percentile interval of a metric of one score."""
        low, high = self._percentiles(self.drawn[score, metric])
        return Interval(self.observed[score, metric], low, high, self.level, "bootstrap", *self.sizes)

    def difference(self, a: str, b: str, metric: Metric, /) -> Comparison:
        """Paired interval and p-value of metric(a) - metric(b)."""
        differences = self.drawn[a, metric] - self.drawn[b, metric]
        low, high = self._percentiles(differences)
        of_a, of_b = self.observed[a, metric], self.observed[b, metric]
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)
        p_value = bootstrap_p_value(differences)
        return Comparison(name, of_a, of_b, of_a - of_b, low, high, self.level, p_value, "bootstrap", *self.sizes)

    def _percentiles(self, drawn: NDArray[np.float64]) -> tuple[float, float]:
        low, high = np.quantile(drawn, [(1 - self.level) / 2, (1 + self.level) / 2])
        return float(low), float(high)


def bootstrap_p_value(differences: NDArray[np.float64], /) -> float:
    """Twice the smaller share of replicates on one side of zero, one more counted, at most 1."""
    smaller = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (1 + smaller) / (1 + len(differences)))


def resample(
    scores: Mapping[str, tuple[NDArray, NDArray]],
    metrics: Sequence[Metric],
    resampling: Resampling,
    /,
    *,
    step: Callable[[], None] = lambda: None,
) -> Resampled:
    """Resample ID and OOD samples; ``scores`` are name -> (ID scores, OOD scores), all of the same samples.

    ``step`` is called after each replicate.
    """
    measures = [_measure(metrics, *(values.astype(np.float64) for values in pair)) for pair in scores.values()]
    n_id, n_ood = (len(values) for values in next(iter(scores.values())))
    generator = np.random.default_rng(resampling.seed)
    drawn = np.empty((resampling.replicates, len(scores) * len(metrics)))
    for replicate in drawn:
        i, j = generator.integers(n_id, size=n_id), generator.integers(n_ood, size=n_ood)
        replicate[:] = [value for measure in measures for value in measure(i, j)]
        step()
    observed = [value for measure in measures for value in measure(slice(None), slice(None))]
    if not (np.isfinite(observed).all() and np.isfinite(drawn).all()):
        raise ValueError("the metric gave NaN or an infinity on some replicate; it must be finite on every resample.")
    keys = [(name, metric) for name in scores for metric in metrics]
    sizes = n_id, n_ood
    return Resampled(
        dict(zip(keys, observed, strict=True)), dict(zip(keys, drawn.T, strict=True)), float(resampling.level), sizes
    )


def _measure(
    metrics: Sequence[Metric], id_scores: Scores, ood_scores: Scores
) -> Callable[[Choice, Choice], list[float]]:
    """The metrics of one score as a function of the chosen ID and OOD samples, which are counted once for all."""
    for metric in metrics:
        if not callable(metric) and metric not in METRICS:
            raise ValueError(f"metric must be a function or one of {', '.join(METRICS)}; got {metric!r}.")
    coded = encode(id_scores, ood_scores)

    def measure(i: Choice, j: Choice) -> list[float]:
        counts = coded.count(coded.id_codes[i]), coded.count(coded.ood_codes[j])
        return [
            float(metric(id_scores[i], ood_scores[j])) if callable(metric) else METRICS[metric](*counts)
            for metric in metrics
        ]

    return measure
