"""Bootstrap intervals of many scores and metrics from the same draws, so that ten intervals cost little more than one.

Draw for draw and digit for digit the same as ``bootstrap_interval`` and ``bootstrap_difference`` with the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation import Comparison, Interval
from credalens.evaluation.statistics.tally import METRICS, encode

__all__ = ["Resampled", "Resampling", "resample"]


@dataclass(frozen=True)
class Resampling:
    """Level of every interval, and how the bootstrap draws."""

    level: float = 0.95
    replicates: int = 300
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Resampled:
    """Metrics of scores on all samples, and on every replicate: (score, metric) -> (replicates,)."""

    observed: dict[tuple[str, str], float]
    drawn: dict[tuple[str, str], NDArray[np.float64]]
    level: float
    sizes: tuple[int, int]

    def interval(self, score: str, metric: str, /) -> Interval:
        """Percentile interval of a metric of one score."""
        low, high = self._percentiles(self.drawn[score, metric])
        return Interval(self.observed[score, metric], low, high, self.level, "bootstrap", *self.sizes)

    def difference(self, a: str, b: str, metric: str, /) -> Comparison:
        """Paired interval and p-value of metric(a) - metric(b)."""
        differences = self.drawn[a, metric] - self.drawn[b, metric]
        low, high = self._percentiles(differences)
        values = self.observed[a, metric], self.observed[b, metric]
        tail = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
        p_value = min(1.0, 2 * (1 + tail) / (1 + len(differences)))
        gap = values[0] - values[1]
        return Comparison(metric, *values, gap, low, high, self.level, p_value, "bootstrap", *self.sizes)

    def _percentiles(self, drawn: NDArray[np.float64]) -> tuple[float, float]:
        low, high = np.quantile(drawn, [(1 - self.level) / 2, (1 + self.level) / 2])
        return float(low), float(high)


def resample(
    scores: Mapping[str, tuple[NDArray, NDArray]],
    metrics: Sequence[str],
    how: Resampling,
    /,
    *,
    step: Callable[[], None] = lambda: None,
) -> Resampled:
    """Resample ID and OOD samples; ``scores`` are name -> (ID scores, OOD scores), all of the same samples.

    ``step`` is called after each replicate.
    """
    coded = {name: encode(*(values.astype(np.float64) for values in pair)) for name, pair in scores.items()}
    n_id, n_ood = (len(values) for values in next(iter(scores.values())))

    def measure(i: NDArray[np.int64] | slice, j: NDArray[np.int64] | slice) -> list[float]:
        found = []
        for one in coded.values():
            counts = one.count(one.id_codes[i]), one.count(one.ood_codes[j])
            found += [METRICS[metric](*counts) for metric in metrics]
        return found

    generator = np.random.default_rng(how.seed)
    drawn = np.empty((how.replicates, len(scores) * len(metrics)))
    for replicate in drawn:
        replicate[:] = measure(generator.integers(n_id, size=n_id), generator.integers(n_ood, size=n_ood))
        step()
    keys = [(name, metric) for name in scores for metric in metrics]
    observed = dict(zip(keys, measure(slice(None), slice(None)), strict=True))
    return Resampled(observed, dict(zip(keys, drawn.T, strict=True)), how.level, (n_id, n_ood))
