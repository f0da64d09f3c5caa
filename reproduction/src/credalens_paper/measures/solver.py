"""The paper's solver beside ours: SciPy's SLSQP for both entropies, on a subsample, with its errors and its time.

The minimum of a concave function has many local minima, and a local solver ends in one of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.entropy import lower_entropy, upper_entropy
from credalens.evaluation import compare_auroc, ood_metrics
from credalens_paper.json_records import from_json, named

Array = NDArray[np.float64]
Intervals = tuple[NDArray[np.floating], NDArray[np.floating]]
WRONG: Final = (0.001, 0.01, 0.1)
"""A value further from the exact one than this, in bits, counts as wrong; the first is the mildest."""


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


def slsqp_entropies(lower: Array, upper: Array, /) -> tuple[float, float]:
    """(upper, lower) entropy in bits of one interval system as a local solver finds them, from the intersection probability.

    >>> highest, lowest = slsqp_entropies(np.array([0.2, 0.3]), np.array([0.7, 0.8]))
    >>> round(highest, 3)
    1.0
    """
    from scipy.optimize import minimize

    width = upper - lower
    start = lower + (1 - lower.sum()) / max(width.sum(), np.finfo(float).tiny) * width
    constraint = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like}
    entropies = []
    for sign in (-1.0, 1.0):
        with np.errstate(all="ignore"):
            result = minimize(
                lambda p, sign=sign: sign * _entropy(p),
                start,
                method="SLSQP",
                bounds=list(zip(lower, upper, strict=True)),
                constraints=[constraint],
            )
        entropies.append(_entropy(np.clip(result.x, lower, upper)))
    return entropies[0], entropies[1]


def _entropy(p: Array) -> float:
    q = np.clip(p, 0, 1)
    return float(-(q * np.log2(np.where(q > 0, q, 1))).sum())


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
    exact, local = _scores(inside.exact, outside.exact), _scores(inside.local, outside.local)
    change = compare_auroc(*exact[0], *local[0])
    numbers = {"difference": 100 * change.difference, "low": 100 * change.low, "high": 100 * change.high}
    for solver, scores in (("exact", exact), ("SLSQP", local)):
        for measure, pair in zip(("EU", "TU"), scores, strict=True):
            metrics = ood_metrics(*pair)
            numbers[f"{solver}.{measure}.AUROC"] = 100 * metrics.auroc
            numbers[f"{solver}.{measure}.AUPRC"] = 100 * metrics.auprc
    return from_json(SolverEffect, numbers)


def compare_solvers(
    inside: Intervals, outside: Intervals, /, *, samples: int, seed: int = 0
) -> tuple[SolverErrors, SolverEffect]:
    """Both solvers on `samples` random inputs of each set, given as (lower, upper)."""
    rng = np.random.default_rng(seed)
    first, second = solve(inside, samples, rng), solve(outside, samples, rng)
    both = Solved(
        np.concatenate([first.exact, second.exact]),
        np.concatenate([first.local, second.local]),
        first.seconds + second.seconds,
    )
    return solver_errors(both), solver_effect(first, second)


def _scores(inside: Array, outside: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """EU and TU of the (upper, lower) entropies of either set."""
    epistemic = [np.maximum(entropies[:, 0] - entropies[:, 1], 0) for entropies in (inside, outside)]
    return (epistemic[0], epistemic[1]), (inside[:, 0], outside[:, 0])
