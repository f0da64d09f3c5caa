"""Differences of rounding: widths of an ulp, intervals that are nearly equal, and what they must not change."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

import credalens
from attack.case import Case, expect, expect_close
from attack.ensembles import common_part, row
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels.lower.solve import lower_entropy_rows

CLOSED = 1e-9
SAME = 1e-10
NEAR = 1e-12  # relative: widths that are rounding
TIMES, FREE = 10, 10  # the work of widths that are rounding, over that without them; nodes of a row that do not count


def attack(case: Case) -> None:
    """Members with a common part and permuted members: same uncertainty, and work, with rounding, without, in any order."""
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
    _check_work(case, members, classes)


def _row(case: Case, members: int, classes: int) -> NDArray:
    if case.between(0, 1):
        return common_part(case, members, classes)
    return row(case, case.choose("near", "swaps", "rounded"), members, classes)


def _check_work(case: Case, members: int, classes: int) -> None:
    """The root closes rows whose widths are rounding as those where they are nothing; a search would repair what it missed."""
    probs = np.stack([common_part(case, members, classes) for _ in range(100)], axis=1)
    probs /= probs.sum(axis=-1, keepdims=True)
    lower, upper = probs.min(axis=0), probs.max(axis=0)
    without, nodes = _nodes(lower, np.where(upper - lower <= NEAR * upper, lower, upper)), _nodes(lower, upper)
    most = TIMES * without + FREE * len(lower)
    expect(nodes <= most, f"{nodes:,} nodes, and {without:,} where widths that are rounding are nothing")


def _nodes(lower: NDArray, upper: NDArray) -> int:
    value, bound = np.full(len(lower), np.inf), np.full(len(lower), -np.inf)
    return lower_entropy_rows(lower, upper, TOLERANCE, MAX_NODES, value, bound, np.empty((len(lower), 0)))


def _certified(probs: NDArray) -> credalens.CredalPrediction:
    """The prediction, every row of which must be certified, so that there is nothing to warn of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="there is a single member|all members predict the same")
        prediction = credalens.wrap(probs)
    gap = prediction.aleatoric - prediction.aleatoric_bound
    expect((gap <= CLOSED).all(), f"{(gap > CLOSED).sum()} rows are open, by up to {gap.max():.3g} bits")
    return prediction
