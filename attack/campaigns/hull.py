"""The convex hull of the members."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

import credalens
from attack import truths
from attack.case import Case, expect, expect_close
from attack.ensembles import ensemble
from tests import oracles


def attack(case: Case) -> None:
    """ConvexHull: entropies with their certificate, lower probabilities, masses and Hartley by enumeration."""
    probs = ensemble(case, rows=3, classes=(2, case.choose(4, 7, 60)), members=(1, case.choose(3, 12)))
    hull, p = credalens.ConvexHull(probs), truths.member_rows(probs)
    expect_close("lower_entropy", hull.lower_entropy(), oracles.entropy(p).min(axis=0), tolerance=1e-11)
    _check_upper(case, hull, p)
    if probs.shape[-1] <= 7:
        _check_subsets(hull, p)


def _check_upper(case: Case, hull: credalens.ConvexHull, p: NDArray) -> None:
    value, q, (same, bound) = hull.upper_entropy(return_distribution=True, return_bounds=True)
    expect_close("the value of return_bounds", same, value, tolerance=0)
    expect((value <= bound).all(), f"the bound is {(value - bound).max():.3g} below the value")
    expect((bound - value <= 1e-8).all(), f"value and bound are {(bound - value).max():.3g} bits apart")
    expect_close("the entropy of the mixture", oracles.entropy(q), value, tolerance=1e-11)
    for i, mixture in enumerate(q):
        _, distance = nnls(p[:, i].T, mixture)
        expect(distance <= 1e-9, f"row {i}: the mixture is {distance:.3g} away from the hull")
    weights = case.rng.dirichlet(np.full(len(p), 0.5), 300)
    best = oracles.entropy(np.einsum("wn,nrc->wrc", weights, p)).max(axis=0)
    expect((best <= bound + 1e-11).all(), f"a mixture is {(best - bound).max():.3g} bits above the bound")


def _check_subsets(hull: credalens.ConvexHull, p: NDArray) -> None:
    classes = p.shape[-1]
    inside = (np.arange(2**classes)[:, None] >> np.arange(classes)) & 1
    capacity = (p @ inside.T).min(axis=0)
    expect_close("lower_probabilities", hull.lower_probabilities(), capacity, tolerance=1e-12)
    masses = [oracles.mobius(row, classes) for row in capacity]
    expect_close("mobius", hull.mobius(), masses, tolerance=1e-11)
    hartley = [max(oracles.hartley_of_capacity(row, classes), 0.0) for row in capacity]
    expect_close("generalized_hartley", hull.generalized_hartley(), hartley, tolerance=1e-10)
    subset = np.flatnonzero(inside[-2]).tolist()
    expect_close("lower_probability", hull.lower_probability(subset), capacity[:, -2], tolerance=1e-12)
