"""Differences of rounding: widths of an ulp, intervals that are nearly equal, and what they must not change."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, expect, expect_close
from attack.ensembles import common_part, row

CLOSED = 1e-9
SAME = 1e-10


def attack(case: Case) -> None:
    """Members with a common part and permuted members: the same uncertainty with rounding, without it, in any order."""
    members, classes = case.between(2, 12), case.between(6, 120)
    case.count(8)
    exact = np.stack([_row(case, members, classes) for _ in range(8)], axis=1)
    noise = 1 + case.choose(1e-16, 1e-15) * case.rng.normal(size=exact.shape)
    noisy = exact * noise
    order = case.rng.permutation(classes)
    of_exact, of_noisy, reordered = (_certified(p) for p in (exact, noisy, noisy[..., order]))
    for name in ("total", "aleatoric", "epistemic"):
        value = getattr(of_noisy, name)
        expect_close(f"{name} without rounding", getattr(of_exact, name), value, tolerance=SAME)
        expect_close(f"{name} of permuted classes", getattr(reordered, name), value, tolerance=SAME)


def _row(case: Case, members: int, classes: int) -> NDArray:
    if case.between(0, 1):
        return common_part(case, members, classes)
    return row(case, case.choose("near", "swaps", "rounded"), members, classes)


def _certified(probs: NDArray) -> credalens.CredalPrediction:
    """The prediction, every row of which must be certified, so that there is nothing to warn of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="there is a single member|all members predict the same")
        prediction = credalens.wrap(probs)
    gap = prediction.aleatoric - prediction.aleatoric_bound
    expect((gap <= CLOSED).all(), f"{(gap > CLOSED).sum()} rows are open, by up to {gap.max():.3g} bits")
    return prediction
