"""The paper's solver beside ours: SciPy's SLSQP for both entropies, on a subsample, with its errors and its time.

The minimum of a concave function has many local minima, and a local solver ends in one of them.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from credalens.core.entropy import lower_entropy, upper_entropy
from credalens.evaluation import ood_metrics

__all__ = ["compare_solvers", "slsqp_entropies"]

Array = NDArray[np.float64]
Intervals = tuple[NDArray[np.floating], NDArray[np.floating]]
WRONG = 1e-3
"""A value further from the exact one than this, in bits, counts as wrong."""


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
    found = []
    for sign in (-1.0, 1.0):
        with np.errstate(all="ignore"):
            result = minimize(
                lambda p, sign=sign: sign * _entropy(p),
                start,
                method="SLSQP",
                bounds=list(zip(lower, upper, strict=True)),
                constraints=[constraint],
            )
        found.append(_entropy(np.clip(result.x, lower, upper)))
    return found[0], found[1]


def _entropy(p: Array) -> float:
    q = np.clip(p, 0, 1)
    return float(-(q * np.log2(np.where(q > 0, q, 1))).sum())


def compare_solvers(inside: Intervals, outside: Intervals, /, *, samples: int, seed: int = 0) -> dict[str, float]:
    """Both solvers on `samples` random inputs of each set, given as (lower, upper): detection, errors, time.

    `wrong` is the share of lower entropies off by more than a thousandth of a bit.
    """
    rng = np.random.default_rng(seed)
    exact, local, spent = [], [], 0.0
    for lower, upper in (inside, outside):
        chosen = np.sort(rng.choice(len(lower), min(samples, len(lower)), replace=False))
        low, high = lower[chosen].astype(np.float64), upper[chosen].astype(np.float64)
        exact.append(np.stack([upper_entropy(low, high), lower_entropy(low, high)], axis=1))
        begun = time.perf_counter()
        local.append(np.array([slsqp_entropies(*row) for row in zip(low, high, strict=True)]))
        spent += time.perf_counter() - begun
    errors = np.abs(np.concatenate(local) - np.concatenate(exact))[:, 1]
    return {
        "samples": len(errors),
        "wrong": float((errors > WRONG).mean()),
        "largest_error": float(errors.max()),
        "ms_per_input": 1000 * spent / len(errors),
        **_detection("exact", exact),
        **_detection("SLSQP", local),
    }


def _detection(solver: str, entropies: list[Array]) -> dict[str, float]:
    scores = {"EU": [e[:, 0] - e[:, 1] for e in entropies], "TU": [e[:, 0] for e in entropies]}
    numbers: dict[str, float] = {}
    for measure, (inside, outside) in scores.items():
        metrics = ood_metrics(inside, outside)
        numbers |= {f"{solver}.{measure}.AUROC": 100 * metrics.auroc, f"{solver}.{measure}.AUPRC": 100 * metrics.auprc}
    return numbers
