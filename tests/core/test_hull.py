"""The convex hull of the members: entropies with certificate, lower probability, Moebius masses, vertices, Hartley."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings

from credalens import ConvexHull, generalized_hartley, lower_entropy, probability_intervals, upper_entropy
from tests import oracles
from tests.memory_use import with_peak
from tests.strategies import KINDS, batch_of, ensembles


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 4), (2, 2), (5, 10), (20, 6), (5, 100), (40, 30), (65, 3), (300, 12), (100, 40)])
def test_upper_entropy_is_certified(kind, shape):
    members, classes = shape
    batch = batch_of(kind, members, 20, classes)
    value, q, (same, bound) = ConvexHull(batch).upper_entropy(return_distribution=True, return_bounds=True)
    np.testing.assert_array_equal(value, same)
    assert (bound - value <= 1e-9).all()
    np.testing.assert_allclose(oracles.entropy(q), value, atol=1e-12)
    # The KKT certificate recomputed from the returned mixture: no member's cross-entropy exceeds the entropy.
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = -np.where(batch > 0, batch * np.log2(q), 0).sum(-1).max(0)
    assert (cross - value <= 1e-9).all()


@settings(max_examples=10)
@given(ensembles(max_classes=5, max_members=4, kinds=("flat", "peaked", "rounded")))
def test_upper_entropy_beats_a_slow_ascent(members):
    ours, (slow, bound) = ConvexHull(members).upper_entropy(), oracles.hull_upper_entropy(members)
    assert slow - 1e-10 <= ours <= bound + 1e-10


@given(ensembles())
def test_the_hull_lies_inside_the_intervals(members):
    hull = ConvexHull(members)
    low, high = probability_intervals(members)
    assert hull.upper_entropy() <= upper_entropy(low, high) + 1e-10
    assert hull.lower_entropy() >= lower_entropy(low, high) - 1e-10
    assert hull.generalized_hartley() <= generalized_hartley(low, high) + 1e-10
    assert math.isclose(hull.lower_entropy(), oracles.entropy(members).min(), abs_tol=1e-12)


@given(ensembles(max_classes=6))
def test_lower_probabilities_and_masses(members):
    hull, classes = ConvexHull(members), members.shape[1]
    capacity = hull.lower_probabilities()
    for mask in range(2**classes):
        subset = [k for k in range(classes) if mask >> k & 1]
        assert math.isclose(capacity[mask], members[:, subset].sum(axis=1).min(), abs_tol=1e-12)
        assert math.isclose(capacity[mask], hull.lower_probability(subset), abs_tol=1e-12)
    mass = hull.mobius()
    np.testing.assert_allclose(mass, oracles.mobius(capacity, classes), atol=1e-11)
    assert math.isclose(mass.sum(), 1.0, abs_tol=1e-11)
    assert math.isclose(
        hull.generalized_hartley(), max(oracles.hartley_of_capacity(capacity, classes), 0), abs_tol=1e-9
    )


def test_permutation_vertices_of_two_monotone_members_are_the_vertices():
    # Two members in two classes: the segment between them.
    points = ConvexHull([[0.2, 0.8], [0.5, 0.5]]).permutation_vertices()
    assert {tuple(p) for p in points.round(12)} == {(0.2, 0.8), (0.5, 0.5)}
    batch = ConvexHull(batch_of("flat", 3, 4, 3)).permutation_vertices()
    assert batch.shape == (4, 6, 3)
    np.testing.assert_allclose(batch.sum(-1), 1, atol=1e-12)


@pytest.mark.parametrize("classes", [3, 10])
def test_many_members_cost_little_more_than_those_that_matter(classes):
    """Members inside the hull of a few others change nothing; a Newton system of all 5000 would take 200 MB and minutes."""
    corners = batch_of("peaked", 8, 1, classes)
    inside = np.random.default_rng(0).dirichlet(np.ones(8), 5000) @ corners[:, 0]
    hull = ConvexHull(np.concatenate([inside[:, None], corners]))
    expected = ConvexHull(corners).upper_entropy()  # also compiles the kernel, which takes memory of its own
    (value, (_, bound)), peak = with_peak(lambda: hull.upper_entropy(return_bounds=True))
    assert bound - value <= 1e-9
    assert abs(value - expected) <= 1e-9
    assert peak <= 1 << 23


def test_a_spent_budget_is_said_and_leaves_a_certified_bracket():
    hull = ConvexHull(batch_of("peaked", 20, 7, 12))
    best = hull.upper_entropy()
    with pytest.warns(RuntimeWarning, match=r"of 7 rows are not certified after max_steps=1: .* up to"):
        value, q, (low, high) = hull.upper_entropy(max_steps=1, return_bounds=True, return_distribution=True)
    np.testing.assert_allclose(oracles.entropy(q), value, atol=1e-12)
    assert (low == value).all()
    assert (value <= best + 1e-12).all()
    assert (best <= high + 1e-12).all()
    assert (high - value > 1e-9).any()
    with pytest.raises(ValueError, match="max_steps must be at least 1"):
        hull.upper_entropy(max_steps=0)


def test_two_opposite_members_by_hand():
    hull = ConvexHull([[1.0, 0.0], [0.0, 1.0]])
    assert math.isclose(hull.upper_entropy(), 1.0)
    assert math.isclose(hull.lower_entropy(), 0.0, abs_tol=1e-15)
    assert math.isclose(hull.generalized_hartley(), 1.0)


def test_a_class_that_one_member_hardly_deserves():
    # Member 2 is nearly member 1 but alone knows class 3: the best mixture gives it a weight far below rounding.
    members = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.998, 0.002]])
    value, (_, bound) = ConvexHull(members).upper_entropy(return_bounds=True)
    assert bound - value <= 1e-9
    assert value >= math.log2(3) - 1e-9


def test_the_signature_has_nothing_internal():
    assert list(inspect.signature(ConvexHull).parameters) == ["probs", "member_axis"]
    assert not hasattr(ConvexHull, "of_members")
