"""Intervals and paired tests: of any detection metric by resampling, of means and shares in closed form; Holm's correction.

ID and OOD samples count as two independent samples of fixed size, so each replicate of the bootstrap draws from both
separately. All scores and metrics share the draws: ten intervals cost little more than one, and differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import read_paired_scores, read_sample_scores
from credalens.checks.options import check_count, check_fraction
from credalens.evaluation.ood import METRICS, Choice, encode, quantile, two_sided
from credalens.evaluation.results import Comparison, Interval
from credalens.guard.binomial import binomial_interval, binomial_tail

Scores = NDArray[np.float64]
Metric = Literal["auroc", "auprc", "auprc_id", "fpr95", "fpr95_id"] | Callable[[Scores, Scores], float]
Seed = int | np.random.Generator


def bootstrap_interval(
    metric: Metric, id_scores: Any, ood_scores: Any, /, *, level: float = 0.95, replicates: int = 1000, seed: Seed = 0
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
        object.__setattr__(self, "level", check_fraction(self.level, "level"))
        check_count(self.replicates, "replicates", least=round(2 / (1 - self.level)))

    def compare(self, metric: str, a: float, b: float, drawn: NDArray[np.float64], n_id: int, n_ood: int) -> Comparison:
        """A metric of a minus that of b, whose differences on the replicates are ``drawn``."""
        smaller = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
        p_value = min(1.0, 2 * (1 + smaller) / (1 + len(drawn)))
        return Comparison(
            metric, a, b, a - b, *_percentiles(drawn, self.level), self.level, p_value, "bootstrap", n_id, n_ood
        )


def _percentiles(drawn: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Metrics of scores on all samples, and on every replicate: (score, metric) -> (replicates,)."""

    observed: dict[tuple[str, Metric], float]
    drawn: dict[tuple[str, Metric], NDArray[np.float64]]
    resampling: Resampling
    sizes: tuple[int, int]

    def interval(self, score: str, metric: Metric, /) -> Interval:
        """Percentile interval of a metric of one score."""
        level = self.resampling.level
        low, high = _percentiles(self.drawn[score, metric], level)
        return Interval(self.observed[score, metric], low, high, level, "bootstrap", *self.sizes)

    def difference(self, a: str, b: str, metric: Metric, /) -> Comparison:
        """Paired interval and p-value of metric(a) - metric(b)."""
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)
        drawn = self.drawn[a, metric] - self.drawn[b, metric]
        return self.resampling.compare(name, self.observed[a, metric], self.observed[b, metric], drawn, *self.sizes)


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
    by_key = dict(zip(keys, observed, strict=True)), dict(zip(keys, drawn.T, strict=True))
    return Resampled(*by_key, resampling, (n_id, n_ood))


def _measure(
    metrics: Sequence[Metric], id_scores: Scores, ood_scores: Scores
) -> Callable[[Choice, Choice], list[float]]:
    """The metrics of one score as a function of the chosen ID and OOD samples, which are counted once for all."""
    for metric in metrics:
        if not callable(metric) and metric not in METRICS:
            raise ValueError(f"metric must be a function or one of {', '.join(METRICS)}; got {metric!r}.")
    coded = encode(id_scores, ood_scores)

    def measure(i: Choice, j: Choice) -> list[float]:
        counts = coded.counts(i, j)
        return [
            float(metric(id_scores[i], ood_scores[j])) if callable(metric) else METRICS[metric](*counts)
            for metric in metrics
        ]

    return measure


def compare_means(metric: str, a: NDArray, b: NDArray, /, *, level: float) -> Comparison:
    """The mean of a minus that of b, of the same inputs, by the normal approximation.

    >>> compare_means("nll", np.array([0.0, 1.0, 1.0, 2.0]), np.zeros(4), level=0.95).difference
    1.0
    """
    gains, n = a.astype(np.float64) - b, len(a)
    mean, spread = float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(n)
    low, high, p_value = mean - quantile(level) * spread, mean + quantile(level) * spread, two_sided(mean, spread)
    return Comparison(metric, float(a.mean()), float(b.mean()), mean, low, high, level, p_value, "paired normal", n, 0)


def compare_shares(metric: str, a: NDArray[np.bool_], b: NDArray[np.bool_], /, *, level: float) -> Comparison:
    r"""How often a is true minus how often b is, for the same inputs, by McNemar's exact test.

    Of the m inputs for which only one of them is true, the number k for which it is a is binomial with probability
    :math:`\tfrac12` where both shares are the same, so that no small number of inputs makes the test wrong too often. The
    interval :math:`(2 \theta - 1) m / n`, with that of Clopper and Pearson for :math:`\theta`, takes m as given; it is
    widened to hold the normal one, and the p-value is the larger of the two.

    >>> result = compare_shares("accuracy", np.arange(20) < 18, np.arange(20) < 12, level=0.95)
    >>> [round(x, 3) for x in (result.difference, result.low, result.high, result.p_value)]
    [0.3, 0.024, 0.506, 0.031]
    """
    normal = replace(compare_means(metric, a, b, level=level), method="exact McNemar")
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    if (either := only_a + only_b) == 0:
        return normal
    low, high = ((2 * theta - 1) * either / len(a) for theta in binomial_interval(only_a, either, level=level))
    exact = min(1.0, 2 * binomial_tail(min(only_a, only_b), either, 0.5))
    return replace(normal, low=min(low, normal.low), high=max(high, normal.high), p_value=max(exact, normal.p_value))


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
