"""Two searches that share no step, enumeration of flipped classes and branch and bound, find the same lowest entropy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import ProbabilityIntervals, lower_entropy
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels.lower.branch import branch_and_bound_rows
from credalens.kernels.lower.enumeration import flips_workspace
from credalens.kernels.lower.solve import enumerate_rows, search_workspace
from credalens.kernels.simd.phi import phi_pair
from tests import oracles
from tests.strategies import KINDS, batch_of, ensembles

SLACK = 1e-12


def bounds(members):
    return np.ascontiguousarray(members.min(axis=0)), np.ascontiguousarray(members.max(axis=0))


def enumerated(low, high, *, tolerance=TOLERANCE, max_nodes=MAX_NODES):
    """(entropy, bound, minimiser, rows left open for branch and bound, nodes) by enumeration alone."""
    rows = len(low)
    value, bound = np.full(rows, np.inf), np.full(rows, -np.inf)
    p, left = np.empty(low.shape), np.empty(rows, np.int64)
    workspace = search_workspace(low.shape[1]), flips_workspace()
    nodes, count = enumerate_rows(low, high, tolerance, max_nodes, value, bound, p, left, *workspace)
    return value, bound, p, count, nodes


def branched(low, high, *, tolerance=TOLERANCE, max_nodes=200_000):
    """(entropy, bound, minimiser) by branch and bound alone."""
    rows = len(low)
    value, bound, p = np.full(rows, np.inf), np.full(rows, -np.inf), np.empty(low.shape)
    all_rows = np.arange(rows, dtype=np.int64)
    branch_and_bound_rows(low, high, *phi_pair(low, high), tolerance, max_nodes, all_rows, value, bound, p)
    return value, bound, p


def assert_attained(low, high, p, value):
    assert (p >= low).all()
    assert (p <= high).all()
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=0, atol=SLACK)
    np.testing.assert_allclose(oracles.entropy(p), value, rtol=0, atol=1e-11)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(ensembles(max_classes=9))
def test_enumeration_finds_the_lowest_vertex(members):
    low, high = bounds(members[:, None])
    value, bound, p, left, _ = enumerated(low, high)
    expected = oracles.lower_entropy(low[0], high[0])
    assert abs(value[0] - expected) <= 1e-9
    assert bound[0] <= expected + SLACK
    assert value[0] - bound[0] <= TOLERANCE
    assert left == 0
    assert_attained(low, high, p, value)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.sampled_from(KINDS), st.integers(2, 6), st.integers(10, 90), st.integers(0, 2**32 - 1))
def test_both_searches_agree(kind, members, classes, seed):
    low, high = bounds(batch_of(kind, members, 4, classes, seed=seed))
    value, bound, p, _, _ = enumerated(low, high)
    other, other_bound, q = branched(low, high)
    assert_attained(low, high, p, value)
    assert_attained(low, high, q, other)
    assert (bound <= other + SLACK).all()
    assert (other_bound <= value + SLACK).all()
    closed = (value - bound <= TOLERANCE) & (other - other_bound <= TOLERANCE)
    np.testing.assert_allclose(value[closed], other[closed], rtol=0, atol=SLACK)


@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-12, 1e-9, 1e-4])
@pytest.mark.parametrize(("classes", "members"), [(6, 2), (10, 2), (20, 4), (40, 3), (140, 4)])
def test_ties_leave_every_vertex_in_the_set(classes, members, noise):
    """Members that are permutations of a few different numbers: many chords have the same slope up to rounding."""
    rng = np.random.default_rng(classes)
    p = rng.integers(1, 6, (3000 // classes, classes)) + noise * rng.random((3000 // classes, classes))
    low, high = bounds(rng.permuted(np.broadcast_to(p / p.sum(-1, keepdims=True), (members, *p.shape)), axis=-1))
    value, bound, p, _, _ = enumerated(low, high, max_nodes=2000)
    other, other_bound, q = branched(low, high, max_nodes=2000)
    assert_attained(low, high, p, value)
    assert_attained(low, high, q, other)
    assert (np.maximum(bound, other_bound) <= np.minimum(value, other) + SLACK).all()


def test_a_row_without_a_choice_keeps_nothing_of_the_row_before():
    low, high = bounds(batch_of("flat", 3, 2, 6))
    low[1] = high[1] = np.full(6, 1 / 6)
    low[1, 0], high[1, 0] = low[1, 0] - 1e-16, high[1, 0] + 1e-16
    value, _, p = branched(low, high)
    assert_attained(low - 1e-15, high + 1e-15, p, value)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(2, 8), st.sampled_from([0.05, 0.3, 1.0]), st.booleans(), st.integers(0, 2**32 - 1))
def test_intervals_that_no_members_gave(classes, concentration, rounded, seed):
    """Wide, narrow and equal ones; the break class may come first, and any class may have no upper bound to speak of."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, concentration))
    low, high = p * rng.random(classes), np.minimum(p + rng.random(classes) ** rng.choice([1, 4, 12]), 1)
    if rounded:
        low, high = np.floor(20 * low) / 20, np.ceil(20 * high) / 20
    tight = ProbabilityIntervals(low[None], high[None]).tighten()
    value, bound, vertex, _, _ = enumerated(tight.lower, tight.upper)
    expected = oracles.lower_entropy(tight.lower[0], tight.upper[0])
    assert abs(value[0] - expected) <= 1e-9
    assert value[0] - bound[0] <= TOLERANCE
    assert bound[0] <= expected + SLACK
    assert_attained(tight.lower, tight.upper, vertex, value)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.sampled_from(["flat", "mixed", "tiny"]), st.sampled_from([1e-1, 1e-2, 1e-4]), st.integers(0, 2**32 - 1))
def test_a_coarse_tolerance_leaves_a_valid_bracket(kind, tolerance, seed):
    low, high = bounds(batch_of(kind, 4, 3, 50, seed=seed))
    exact = lower_entropy(low, high, max_nodes=200_000)
    value, bound, p, _, _ = enumerated(low, high, tolerance=tolerance)
    assert_attained(low, high, p, value)
    assert (value - bound <= tolerance).all()
    assert (bound <= exact + SLACK).all()
    assert (exact <= value + SLACK).all()


def nested(classes, seed):
    """Intervals one inside the other, all of about the same slope: few dominate others, and every one might be flipped."""
    rng = np.random.default_rng(seed)
    reach = rng.permutation(np.linspace(0.2, 0.9, classes)) / classes
    return 1 / classes - reach[None], 1 / classes + (reach * rng.uniform(0.9, 1.1, classes))[None]


def test_branch_and_bound_takes_over_where_there_is_too_much_to_enumerate():
    low, high = nested(200, 7)
    value, _, _, left, _ = enumerated(low, high)
    assert left == 1
    better, p, (higher, _) = lower_entropy(low, high, return_distribution=True, return_bounds=True, tolerance=1e-4)
    assert_attained(low, high, p, better)
    assert better - higher <= 1e-4
    assert better < value - 1e-4


@pytest.mark.parametrize("max_nodes", [1, 2, 5, 20])
def test_a_spent_budget_is_not_exceeded_and_leaves_a_valid_bracket(max_nodes):
    low, high = bounds(batch_of("flat", 5, 8, 60))
    exact = lower_entropy(low, high)
    value, bound, p, left, nodes = enumerated(low, high, max_nodes=max_nodes)
    assert left == (value - bound > TOLERANCE).sum()
    assert nodes <= len(low) * (max_nodes + 1)
    assert (value - bound > 1e-6).any()
    assert (bound <= exact + SLACK).all()
    assert (exact <= value + SLACK).all()
    assert_attained(low, high, p, value)


@pytest.mark.parametrize(
    ("kind", "rows", "classes", "most"),
    [("flat", 40, 100, 55), ("flat", 8, 1000, 600), ("peaked", 100, 100, 12), ("peaked", 10, 1000, 50)],
)
def test_enumeration_needs_few_nodes_and_leaves_nothing_open(kind, rows, classes, most):
    low, high = bounds(batch_of(kind, 5, rows, classes))
    value, bound, _, left, nodes = enumerated(low, high)
    assert left == 0
    assert (value - bound <= TOLERANCE).all()
    assert nodes / rows < most
