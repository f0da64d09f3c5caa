"""Two members: what is a search for more of them is a sum here."""

from __future__ import annotations

import numpy as np

import credalens
from attack import many_rows
from attack.case import Case, expect, expect_close


def attack(case: Case) -> None:
    """Imprecision of two members is half their L1 distance, exactly zero where they agree; and equal widths need no search."""
    classes = case.between(2, case.choose(10, 60, 500))
    probs = many_rows.predictions(case, rows=case.choose(20, 2000), classes=classes, members=2)
    p = probs / probs.sum(axis=-1, keepdims=True)
    half = 0.5 * np.abs(p[0] - p[1]).sum(axis=-1)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 2.0**-20)):
        prediction = credalens.wrap(probs.astype(dtype))
        expect_close(f"imprecision in {dtype.__name__}", prediction.score("imprecision"), half, tolerance=tolerance)
    if classes <= 10:
        value, (low, high) = credalens.maximum_mean_imprecision(p.min(axis=0), p.max(axis=0), return_bounds=True)
        truth = many_rows.imprecision(p.min(axis=0), p.max(axis=0))
        expect((low <= value).all() and (value <= high).all(), "the bracket does not hold the value")
        expect((low <= truth + 1e-11).all() and (truth <= high + 1e-11).all(), "the bracket does not hold the truth")
        expect_close("by the bounds alone", value, truth, tolerance=1e-11)
    _check_equal_widths(case)


def _check_equal_widths(case: Case) -> None:
    """k classes of the same width, or nearly: the best event holds half of them, or what room is left."""
    classes = case.between(2, 60)
    width, low = case.rng.random() / classes, case.rng.random() / classes
    if not classes * low < 1 < classes * (low + width):
        return
    lower, upper = np.full((1, classes), low), np.full((1, classes), low + width)
    upper = np.minimum(upper, 1 - (lower.sum(axis=1, keepdims=True) - lower))
    lower = np.maximum(lower, 1 - (upper.sum(axis=1, keepdims=True) - upper))
    truth = min(upper.sum() - 1, 1 - lower.sum(), (classes // 2) * (upper - lower)[0, 0])
    noise = case.choose(0.0, 1e-15, 1e-9)
    upper = lower + (upper - lower) * (1 - noise * case.rng.random(upper.shape))
    value, (below, above) = credalens.maximum_mean_imprecision(lower, upper, return_bounds=True)
    expect_close("equal widths", value[0], truth, tolerance=1e-11 + noise)
    expect(above[0] - below[0] <= 1e-9, f"equal widths leave a bracket of {above[0] - below[0]:.3g}")
