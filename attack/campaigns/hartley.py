"""The generalized Hartley measure: exact values, and brackets of at most a thousandth of a bit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import credalens
from attack import truths
from attack.case import Case, expect, expect_close
from attack.ensembles import Grid, bounds, ensemble, grid

BRACKET = 1e-3


def attack(case: Case) -> None:
    """Generalized Hartley against sums over all subsets; above 16 classes a bracket of at most 1e-3 bit holds it."""
    case.choose(_few_classes, _few_that_move, _groups, _many_classes)(case)


def _few_classes(case: Case) -> None:
    lower, upper = bounds(case, rows=3, classes=(2, case.choose(5, 11)))
    _check(lower, upper, [truths.hartley_of_moving(a, b) for a, b in zip(lower, upper, strict=True)])


def _few_that_move(case: Case) -> None:
    """Up to ten classes that move among more than sixteen, others at zero or at a point of the grid."""
    tight = grid(case, rows=100, classes=(2, case.choose(4, 6, 10)), parts=(5, 10, 20, 100)).tightened()
    padding = case.rng.integers(0, 3, case.between(15, case.choose(20, 200))) * case.between(0, 1)
    fixed = np.broadcast_to(padding, (len(tight.lower), padding.size))
    parts = tight.parts + int(padding.sum())
    lower, upper = Grid(np.c_[tight.lower, fixed], np.c_[tight.upper, fixed], parts).floats()
    order = case.rng.permutation(lower.shape[-1])
    lower, upper = lower[:, order], upper[:, order]
    _check_bracket(lower, upper)
    _check(lower[:3], upper[:3], [truths.hartley_of_moving(a, b) for a, b in zip(lower[:3], upper[:3], strict=True)])


def _groups(case: Case) -> None:
    """Classes in up to four groups with the same bounds."""
    counts = case.rng.integers(1, case.choose(6, 12), case.between(2, 4))
    counts[0] += max(0, 17 - counts.sum())
    low = case.rng.integers(0, case.choose(1, 2, 10), counts.size)
    high = low + case.rng.integers(0, case.choose(2, 5, 20), counts.size)
    parts = max(1, case.between(int(low @ counts), int(high @ counts)))
    classes = Grid(np.repeat(low, counts)[None], np.minimum(np.repeat(high, counts), parts)[None], parts)
    if classes.upper.sum() < parts:
        return
    tight, first = classes.tightened(), np.cumsum(counts) - counts
    groups = Grid(tight.lower[:, first], tight.upper[:, first], parts)
    _check(*tight.floats(), [truths.hartley_of_groups(groups, counts)])


def _many_classes(case: Case) -> None:
    probs = ensemble(case, rows=2, classes=(17, case.choose(40, 300)), members=(1, case.choose(5, 40)))
    lower, upper = probs.min(axis=0), probs.max(axis=0)
    value = _check_bracket(lower, upper)
    order = case.rng.permutation(lower.shape[-1])
    permuted = credalens.generalized_hartley(lower[:, order], upper[:, order])
    expect_close("of permuted classes", permuted, value, tolerance=BRACKET)


def _check(lower: NDArray, upper: NDArray, exact: object) -> None:
    truth = np.asarray(exact)
    value, (low, high) = credalens.generalized_hartley(lower, upper, return_bounds=True)
    few = lower.shape[-1] <= 16
    expect_close("generalized_hartley", value, truth, tolerance=1e-10 if few else BRACKET)
    outside = max((low - truth).max(), (truth - high).max())
    expect(outside <= 1e-10, f"the bracket misses the value by {outside:.3g} bits")
    _check_bracket(lower, upper)


def _check_bracket(lower: NDArray, upper: NDArray) -> NDArray:
    value, (low, high) = credalens.generalized_hartley(lower, upper, return_bounds=True)
    expect((low <= value).all() and (value <= high).all(), f"bounds {low}, {high} do not bracket {value}")
    expect((high - low <= BRACKET).all(), f"the bracket is {(high - low).max():.3g} bits wide")
    expect((low >= -1e-12).all(), f"negative: {low.min():.3g}")
    expect((high <= math.log2(lower.shape[-1]) + 1e-12).all(), "above log2 of the number of classes")
    return value
