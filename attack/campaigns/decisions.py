"""Set-valued decisions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import credalens
from attack import truths
from attack.case import Case, expect
from attack.ensembles import bounds, grid
from tests import oracles

CAUTIOUS = ("interval_dominance", "maximality", "e_admissibility")
Truth = Callable[[NDArray, NDArray, int], NDArray]


def attack(case: Case) -> None:
    """Decisions under all rules against whole-number vertices and linear programs, and their order."""
    (_exact if case.between(0, 2) else _nested)(case)


def _exact(case: Case) -> None:
    """Bounds in n-ths: ties are ties, everything else differs by far more than rounding."""
    tight = grid(case, rows=3, classes=(2, case.choose(3, 5, 7))).tightened()
    for rule, truth in TRUTHS.items():
        found = credalens.credal_decision(*tight.floats(), rule)
        wanted = np.array([truth(low, high, tight.parts) for low, high in zip(tight.lower, tight.upper, strict=True)])
        wrong = (found != wanted).any(axis=-1)
        if wrong.any():
            i = int(wrong.argmax())
            where = f"{tight.lower[i]} / {tight.parts} to {tight.upper[i]} / {tight.parts}"
            expect(False, f"{rule} of {where}: {found[i]}, expected {wanted[i]}")


def _dominance(low: NDArray, high: NDArray, parts: int) -> NDArray:
    return np.array([all(low[i] <= high[j] for i in range(low.size) if i != j) for j in range(low.size)])


def _maximality(low: NDArray, high: NDArray, parts: int) -> NDArray:
    points = truths.integer_vertices(low, high, parts)
    least = (points[:, :, None] - points[:, None, :]).min(axis=0)  # of p_i - p_j
    return np.array([all(least[i, j] <= 0 for i in range(low.size) if i != j) for j in range(low.size)])


def _e_admissibility(low: NDArray, high: NDArray, parts: int) -> NDArray:
    return np.array([oracles.is_e_admissible(low / parts, high / parts, i) for i in range(low.size)])


TRUTHS: dict[str, Truth] = {
    "interval_dominance": _dominance,
    "maximality": _maximality,
    "e_admissibility": _e_admissibility,
    "gamma_maximin": lambda low, high, parts: low == low.max(),
    "gamma_maximax": lambda low, high, parts: high == high.max(),
}


def _nested(case: Case) -> None:
    lower, upper = bounds(case, rows=5, classes=(2, case.choose(12, 200, 2000)))
    dominance, maximal, admissible = (credalens.credal_decision(lower, upper, rule) for rule in CAUTIOUS)
    expect(admissible.any(axis=-1).all(), "no class is E-admissible")
    expect((maximal | ~admissible).all(), "an E-admissible class is not maximal")
    expect((dominance | ~maximal).all(), "a maximal class is dominated")
    best = np.take_along_axis(dominance, lower.argmax(axis=-1)[:, None], -1)
    expect(best.all(), "the class with the highest lower bound is dominated")
