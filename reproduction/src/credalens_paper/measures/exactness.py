r"""What exactness changes: the paper's local solver and its printed reduction of classes beside exact and sound ones.

SciPy's SLSQP finds both entropies on a subsample; the minimum of a concave function has many local minima, and a local
solver ends in one of them. PIA keeps the J - 1 classes of highest intersection probability. The bounds that the paper prints
for the merged class are those of the *kept* classes:

.. math:: r_L = \max(1 - \sum_{rest} u,\ \sum_{kept} l), \quad r_U = \min(1 - \sum_{rest} l,\ \sum_{kept} u)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens import (
    ProbabilityIntervals,
    approximate_intervals,
    intersection_probability,
    lower_entropy,
    upper_entropy,
)
from credalens.evaluation import compare_auroc, ood_metrics
from credalens_paper.json_records import from_json, named

Array = NDArray[np.float64]
Intervals = tuple[NDArray[np.floating], NDArray[np.floating]]
WRONG: Final = (0.001, 0.01, 0.1)
"""A value further from the exact one than this, in bits, counts as wrong; the first is the mildest."""
ROUNDING: Final = 1e-9
"""Sums of bounds that miss one by less than this miss it by rounding; such a set counts as not empty."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Random inputs of a set: (upper, lower) entropies (inputs, 2), exact and by the local solver, and its seconds."""

    exact: Array
    local: Array
    seconds: float


@dataclass(frozen=True)
class SolverErrors:
    """How far the local solver is from the exact entropies, in bits, and its time for an input.

    :ivar wrong: the shares of lower entropies off by more than each size in `WRONG`.
    """

    samples: int
    wrong: tuple[float, ...]
    mean_error: float
    largest_error: float
    largest_upper_error: float
    ms_per_input: float


@dataclass(frozen=True, kw_only=True)
class SolverEffect:
    """AUROC and AUPRC (%) by EU and TU of either solver, and exact less SLSQP by EU with DeLong's 95 % interval."""

    exact_eu_auroc: float = named("exact.EU.AUROC")
    exact_eu_auprc: float = named("exact.EU.AUPRC")
    exact_tu_auroc: float = named("exact.TU.AUROC")
    exact_tu_auprc: float = named("exact.TU.AUPRC")
    slsqp_eu_auroc: float = named("SLSQP.EU.AUROC")
    slsqp_eu_auprc: float = named("SLSQP.EU.AUPRC")
    slsqp_tu_auroc: float = named("SLSQP.TU.AUROC")
    slsqp_tu_auprc: float = named("SLSQP.TU.AUPRC")
    difference: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Reduced:
    """One set: which inputs get an empty printed set, and EU without PIA, with the sound one, with the printed one."""

    empty: NDArray[np.bool_]
    exact: Array
    sound: Array
    printed: Array


@dataclass(frozen=True)
class ReductionEffect:
    """AUROC (%) by EU of each reduction, and the shares of empty printed sets.

    :ivar left_sound_auroc: on the inputs whose printed set is not empty; None where there are too few.
    """

    inside_empty: float = named("inside.empty")
    outside_empty: float = named("outside.empty")
    exact_auroc: float = named("exact.AUROC")
    sound_auroc: float = named("sound.AUROC")
    left_sound_auroc: float | None = named("left.sound.AUROC")
    left_printed_auroc: float | None = named("left.printed.AUROC")


def slsqp_entropies(lower: Array, upper: Array, /) -> tuple[float, float]:
    """(upper, lower) entropy in bits of one interval system as a local solver finds them, from the intersection probability."""
    from scipy.optimize import minimize

    def entropy(p: Array) -> float:
        q = np.clip(p, 0, 1)
        return float(-(q * np.log2(np.where(q > 0, q, 1))).sum())

    width = upper - lower
    start = lower + (1 - lower.sum()) / max(width.sum(), np.finfo(float).tiny) * width
    constraint = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like}
    options = {"method": "SLSQP", "bounds": list(zip(lower, upper, strict=True)), "constraints": [constraint]}
    entropies = []
    for sign in (-1.0, 1.0):
        with np.errstate(all="ignore"):
            result = minimize(lambda p, sign=sign: sign * entropy(p), start, **options)
        entropies.append(entropy(np.clip(result.x, lower, upper)))
    return entropies[0], entropies[1]


def solve(intervals: Intervals, samples: int, rng: np.random.Generator, /) -> Solved:
    """Both solvers on `samples` random inputs (all, where there are fewer) of a set given as (lower, upper)."""
    lower, upper = intervals
    chosen = np.sort(rng.choice(len(lower), min(samples, len(lower)), replace=False))
    low, high = lower[chosen].astype(np.float64), upper[chosen].astype(np.float64)
    exact = np.stack([upper_entropy(low, high), lower_entropy(low, high)], axis=1)
    begun = time.perf_counter()
    local = np.array([slsqp_entropies(*row) for row in zip(low, high, strict=True)])
    return Solved(exact, local, time.perf_counter() - begun)


def solver_errors(solved: Solved, /) -> SolverErrors:
    """How far the local solver is from the exact lower and upper entropy."""
    upper, lower = np.abs(solved.local - solved.exact).T
    return SolverErrors(
        samples=len(lower),
        wrong=tuple(float((lower > size).mean()) for size in WRONG),
        mean_error=float(lower.mean()),
        largest_error=float(lower.max()),
        largest_upper_error=float(upper.max()),
        ms_per_input=1000 * solved.seconds / len(lower),
    )


def solver_effect(inside: Solved, outside: Solved, /) -> SolverEffect:
    """What either solver makes of the detection of the outside inputs."""
    numbers, epistemic = {}, []
    for solver, sets in (("exact", (inside.exact, outside.exact)), ("SLSQP", (inside.local, outside.local))):
        pairs = {"EU": [np.maximum(of[:, 0] - of[:, 1], 0) for of in sets], "TU": [of[:, 0] for of in sets]}
        epistemic += pairs["EU"]
        for measure, scores in pairs.items():
            metrics = ood_metrics(*scores)
            numbers[f"{solver}.{measure}.AUROC"] = 100 * metrics.auroc
            numbers[f"{solver}.{measure}.AUPRC"] = 100 * metrics.auprc
    change = compare_auroc(*epistemic)
    numbers |= {"difference": 100 * change.difference, "low": 100 * change.low, "high": 100 * change.high}
    return from_json(SolverEffect, numbers)


def compare_solvers(
    inside: Intervals, outside: Intervals, /, *, samples: int, seed: int = 0
) -> tuple[SolverErrors, SolverEffect]:
    """Both solvers on `samples` random inputs of each set, given as (lower, upper)."""
    rng = np.random.default_rng(seed)
    first, second = solve(inside, samples, rng), solve(outside, samples, rng)
    exact, local = np.concatenate([first.exact, second.exact]), np.concatenate([first.local, second.local])
    both = Solved(exact, local, first.seconds + second.seconds)
    return solver_errors(both), solver_effect(first, second)


def printed_intervals(lower: Array, upper: Array, classes: int, /) -> tuple[Array, Array]:
    """The bounds (inputs, classes) that the printed algorithm gives, valid or not.

    >>> low, high = printed_intervals(np.array([[0.6, 0.1, 0.1]]), np.array([[0.8, 0.2, 0.2]]), 2)
    >>> low.tolist(), high.tolist()
    ([[0.6, 0.6]], [[0.8, 0.8]])
    """
    order = np.argsort(-np.asarray(intersection_probability(lower, upper)), axis=-1, kind="stable")
    low, high = np.take_along_axis(lower, order, -1), np.take_along_axis(upper, order, -1)
    kept = slice(None), slice(None, classes - 1)
    rest = slice(None), slice(classes - 1, None)
    merged_low = np.maximum(1 - high[rest].sum(-1), low[kept].sum(-1))
    merged_high = np.minimum(1 - low[rest].sum(-1), high[kept].sum(-1))
    return np.c_[low[kept], merged_low], np.c_[high[kept], merged_high]


def empty_sets(lower: Array, upper: Array, /) -> NDArray[np.bool_]:
    """Which interval systems hold no distribution."""
    crossed = (lower > upper + ROUNDING).any(-1)
    return crossed | (lower.sum(-1) > 1 + ROUNDING) | (upper.sum(-1) < 1 - ROUNDING)


def reduce_rows(intervals: Intervals, classes: int, /, *, threads: int | None = None) -> Reduced:
    """Both reductions of the intervals (lower, upper) of a set to so many classes; EU is NaN where a set is empty."""

    def epistemic(intervals: ProbabilityIntervals) -> Array:
        gap = upper_entropy(*intervals, threads=threads) - lower_entropy(*intervals, threads=threads)
        return np.maximum(np.asarray(gap), 0)

    lower, upper = (np.asarray(bound, np.float64) for bound in intervals)
    low, high = printed_intervals(lower, upper, classes)
    empty = empty_sets(low, high)
    printed = np.full(len(lower), np.nan)
    if not empty.all():
        valid = low[~empty], np.maximum(low, high)[~empty]  # crossed by rounding at most
        printed[~empty] = epistemic(ProbabilityIntervals(*valid).tighten())
    whole, sound = ProbabilityIntervals(lower, upper), approximate_intervals(lower, upper, classes)
    return Reduced(empty, epistemic(whole), epistemic(sound), printed)


def reduction_effect(inside: Reduced, outside: Reduced, /) -> ReductionEffect:
    """Detection of the outside inputs by EU, without PIA and with either form of it."""

    def auroc(one: Array, other: Array) -> float:
        return 100 * ood_metrics(one, other).auroc

    left, beyond = ~inside.empty, ~outside.empty
    some = bool(left.any() and beyond.any())
    return ReductionEffect(
        inside_empty=float(inside.empty.mean()),
        outside_empty=float(outside.empty.mean()),
        exact_auroc=auroc(inside.exact, outside.exact),
        sound_auroc=auroc(inside.sound, outside.sound),
        left_sound_auroc=auroc(inside.sound[left], outside.sound[beyond]) if some else None,
        left_printed_auroc=auroc(inside.printed[left], outside.printed[beyond]) if some else None,
    )
