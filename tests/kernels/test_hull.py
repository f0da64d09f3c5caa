"""The highest entropy of a hull: a mixture of the members, and no mixture has more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.core.hull import MAX_STEPS, TOLERANCE
from credalens.kernels.hull import MANY, hull_upper_entropy_rows, hull_workspace
from tests import oracles
from tests.strategies import KINDS, batch_of

common = settings(derandomize=True, deadline=None)


def solve(members, *, tolerance=TOLERANCE, steps=MAX_STEPS):
    """(entropy, certificate, maximiser) of every row, in scratch memory full of what may not be read."""
    count, rows, classes = members.shape
    entropy, gap, q = np.full(rows, np.nan), np.full(rows, np.nan), np.full((rows, classes), np.nan)
    scratch = hull_workspace(count, classes, steps)
    for array in scratch:
        array[...] = -7
    hull_upper_entropy_rows(np.ascontiguousarray(members), tolerance, steps, entropy, gap, q, *scratch)
    return entropy, gap, q


def assert_best(members, entropy, gap, q, slack=1e-9):
    """Entropy is concave, so that it is nowhere above its tangent at q: no mixture has more than the largest cross-entropy."""
    assert (gap >= 0).all()
    for row in range(q.shape[0]):
        p = members[:, row]
        assert oracles.distance_to_hull(p, q[row]) <= 1e-9
        np.testing.assert_allclose(q[row].sum(), 1, rtol=0, atol=1e-12)
        np.testing.assert_allclose(entropy[row], oracles.entropy(q[row]), rtol=0, atol=1e-12)
        most = (-p * np.log2(np.maximum(q[row], 1e-300))).sum(axis=1).max()
        assert most - entropy[row] <= slack
        np.testing.assert_allclose(gap[row], max(most - entropy[row], 0), rtol=0, atol=1e-11)


@common
@given(st.sampled_from(KINDS), st.integers(1, 7), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_the_mixture_has_the_highest_entropy(kind, count, classes, seed):
    members = batch_of(kind, count, 3, classes, seed=seed)
    assert_best(members, *solve(members))


@common
@given(st.sampled_from(KINDS), st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_two_members_are_a_line(kind, classes, seed):
    members = batch_of(kind, 2, 3, classes, seed=seed)
    entropy, _, q = solve(members)
    for row in range(3):
        expected, mixture = oracles.line_upper_entropy(*members[:, row])
        np.testing.assert_allclose(entropy[row], expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(q[row], mixture, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("count", "classes"), [(MANY - 1, 5), (MANY + 1, 5), (300, 20), (200, 100)])
@pytest.mark.parametrize("kind", ["flat", "peaked", "sparse"])
def test_many_members_of_whom_few_are_in_use(kind, count, classes):
    members = batch_of(kind, count, 2, classes, seed=count)
    assert_best(members, *solve(members))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_few_steps_leave_a_certificate_that_holds(steps):
    members = batch_of("peaked", 6, 20, 8)
    entropy, gap, q = solve(members, steps=steps)
    best, _, _ = solve(members)
    assert_best(members, entropy, gap, q, slack=np.inf)
    assert (entropy <= best + 1e-9).all()
    assert (best <= entropy + gap + 1e-9).all()
    assert (gap > 1e-6).any()


def test_rows_do_not_know_of_each_other():
    members = np.concatenate([batch_of(kind, 5, 2, 6) for kind in KINDS], axis=1)
    together = solve(members)
    for row in range(members.shape[1]):
        for one, other in zip(together, solve(members[:, row : row + 1]), strict=True):
            np.testing.assert_array_equal(one[row], other[0])
