"""Numbers with intervals over inputs: AUROCs by DeLong's variance, rank correlations by resampling, shares by theirs.

An estimate is a mean over runs on the same inputs. Its 95 % interval says what other inputs would give with the same
networks; values of two scores are of the same inputs and runs, so intervals of their differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.ood import quantile, wins

Array = NDArray[Any]
Scores = Mapping[str, Array]
Pairs = Mapping[str, tuple[str, str]]  # the name of a difference -> the names of the two scores it is of
LEVEL: Final = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over runs, with its 95 % interval over inputs."""

    name: str
    mean: float
    low: float
    high: float


def auroc_estimates(inside: Sequence[Scores], outside: Sequence[Scores], pairs: Pairs, /) -> tuple[list[Estimate], ...]:
    """The AUROC of every score, in per cent, and the differences of pairs of them, over runs on the same inputs."""
    shares = {name: _win_shares([(run[name], other[name]) for run, other in zip(inside, outside, strict=True)])
              for name in inside[0]}  # fmt: skip
    gains = {name: tuple(a - b for a, b in zip(shares[one], shares[other], strict=True))
             for name, (one, other) in pairs.items()}  # fmt: skip
    return [_auroc(name, *part) for name, part in shares.items()], [_auroc(name, *part) for name, part in gains.items()]


def _win_shares(runs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """For every input inside and outside the share of the other kind that it is ordered rightly with, averaged over runs."""
    counted = [wins(inside, outside) for inside, outside in runs]
    n_inside, n_outside = (len(scores) for scores in runs[0])
    of_id = np.mean([one.of_id for one in counted], axis=0) / (2 * n_outside)
    return of_id, np.mean([one.of_ood for one in counted], axis=0) / (2 * n_inside)


def _auroc(name: str, of_id: Array, of_ood: Array) -> Estimate:
    variance = sum(float(np.var(part, ddof=1)) / len(part) for part in (of_id, of_ood))
    mean, margin = 100 * float(of_ood.mean()), 100 * quantile(LEVEL) * math.sqrt(variance)
    return Estimate(name, mean, mean - margin, mean + margin)


def share_estimate(name: str, runs: Sequence[Array], /) -> Estimate:
    """The share of inputs for which something is true, in per cent, averaged over runs."""
    shares = 100 * np.mean(np.asarray(runs, np.float64), axis=0)
    mean, margin = float(shares.mean()), quantile(LEVEL) * float(np.std(shares, ddof=1)) / math.sqrt(len(shares))
    return Estimate(name, mean, max(0.0, mean - margin), min(100.0, mean + margin))


def correlation_estimates(
    runs: Sequence[Scores], target: Array, pairs: Pairs, /, *, resamples: int = 1000, seed: int = 0
) -> tuple[list[Estimate], ...]:
    """Spearman's rank correlation of every score with the target, and differences of pairs, by resampling inputs."""
    rng, count = np.random.default_rng(seed), len(target)
    weights: list[Array] = [np.ones(count)]
    weights += [np.bincount(rng.integers(0, count, count), minlength=count) for _ in range(resamples)]
    # For each value how many smaller ones there are, those that are equal counted once.
    codes = {name: [np.unique(run[name], return_inverse=True)[1] for run in runs] for name in runs[0]}
    truth, drawn = np.unique(target, return_inverse=True)[1], {name: np.zeros(len(weights)) for name in codes}
    for place, weight in enumerate(weights):
        ranks = _centred_ranks(truth, weight)
        for name, coded in codes.items():
            drawn[name][place] = np.mean([_correlation(ranks, _centred_ranks(one, weight), weight) for one in coded])
    gains = {name: drawn[one] - drawn[other] for name, (one, other) in pairs.items()}

    def estimate(name: str, values: Array) -> Estimate:  # of the sample itself the first value, of resamples the others
        low, high = np.quantile(values[1:], ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        return Estimate(name, float(values[0]), float(low), float(high))

    return tuple([estimate(name, values) for name, values in part.items()] for part in (drawn, gains))


def _centred_ranks(codes: Array, weights: Array) -> Array:
    """Mid-ranks of a weighted sample, less their mean."""
    counts = np.bincount(codes, weights)
    ranks = (np.cumsum(counts) - counts / 2)[codes]
    return np.asarray(ranks - weights @ ranks / weights.sum())


def _correlation(a: Array, b: Array, weights: Array) -> float:
    spread = math.sqrt(float(weights @ (a * a)) * float(weights @ (b * b)))
    return float(weights @ (a * b)) / spread if spread else 0.0
