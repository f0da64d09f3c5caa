"""The ways to decompose uncertainty that are timed against each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["classical_numpy", "slsqp"]


def classical_numpy(probs: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """The averaged prediction's decomposition in NumPy, in the precision of its input, which is validated as ours is."""
    total = probs.sum(axis=-1)
    if not ((probs >= 0).all() and (np.abs(total - 1) <= 1e-5).all()):
        raise ValueError("rows must be probability distributions")
    mean = probs.mean(axis=0)
    highest, average = _entropy(mean), _entropy(probs).mean(axis=0)
    return highest, average, highest - average


def _entropy(p: NDArray) -> NDArray:
    """Shannon entropy in bits."""
    return -(p * np.log2(np.where(p > 0, p, 1))).sum(axis=-1)


def slsqp(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> tuple[float, float]:
    """(highest, lowest) entropy of one interval system the paper's way: SciPy's SLSQP, once for each sign.

    The paper names SciPy and no more. SLSQP is what ``minimize`` takes for bounds and an equation. The equation's Jacobian
    is more than the paper mentions: it spares the solver a quarter of its time, so that the comparison errs in its favour.
    """
    from scipy.optimize import minimize

    start = lower + (1 - lower.sum()) / max((upper - lower).sum(), 1e-300) * (upper - lower)
    constraint = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones_like(p)}
    bounds = list(zip(lower, upper, strict=True))
    results = []
    for sign in (-1.0, 1.0):
        found = minimize(
            lambda p, s=sign: s * float(_entropy(np.clip(p, 0, 1))),
            start, method="SLSQP", bounds=bounds, constraints=[constraint],
        )  # fmt: skip
        results.append(sign * float(found.fun))
    return results[0], results[1]
