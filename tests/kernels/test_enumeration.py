"""Two searches that share no step, enumeration and branch and bound, find the same lowest entropy; what they flip."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import ProbabilityIntervals, lower_entropy
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels.lower.branch import branch_and_bound_rows
from credalens.kernels.lower.enumeration import (
    DOWN,
    MANY,
    MOST,
    UP,
    Items,
    collect_items,
    flips_workspace,
    items_workspace,
)
from credalens.kernels.lower.open_classes import OpenClasses, open_workspace
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


@numba.njit
def collected(m, classes, at, r, limit, items):
    return collect_items(m, classes, at, r, limit, items)


def room_for_items():
    floats, integers = items_workspace()
    return Items(*floats, *integers)


def row_of(kind, members, classes, seed):
    """l, u, phi of both and slopes of the classes that have a width, and how many these are; padded as `open_classes` does."""
    if kind == "parts":  # many slopes are equal
        p = np.random.default_rng(seed).multinomial(2 * classes, np.full(classes, 1 / classes), members) / (2 * classes)
    else:
        p = batch_of(kind, members, 1, classes, seed=seed)[:, 0]
    low, high = p.min(axis=0), p.max(axis=0)
    low, high = low[high > low], high[high > low]
    bounds, order = open_workspace(classes)
    bounds[:4], bounds[4] = 0.0, 1e300
    bounds[0, : low.size], bounds[1, : low.size] = low, high
    bounds[2], bounds[3] = phi_pair(bounds[0], bounds[1])
    bounds[4, : low.size] = (bounds[3] - bounds[2])[: low.size] / (high - low)
    return low.size, bounds, order


def expected(m, bounds, at, limit):
    """(items down, items up, champion down, champion up, least slope for taking, for giving) one class after the other."""
    low, high, phi_low, phi_high, slope = bounds[:, :m]
    away, everyone = slope - slope[at], range(m)
    cost, y = (high - low) * abs(away), 2.0 ** -slope[at] / np.e
    phi_y = -y * np.log2(y)
    down = min((k for k in everyone if cost[k] >= limit and away[k] >= 0), key=lambda k: -low[k], default=-1)
    up = min((k for k in everyone if cost[k] >= limit and away[k] < 0), key=lambda k: high[k], default=-1)
    items: dict[int, list[int]] = {DOWN: [], UP: []}
    takers, givers = {down} - {-1}, {up} - {-1}
    for k in sorted(everyone, key=lambda k: abs(away[k])):
        first = away[k] < 0 or (away[k] == 0 and k < at)
        champion = up if first else down
        sign = 1 if first else -1
        free = champion < 0 or sign * low[k] < sign * low[champion] or sign * high[k] < sign * high[champion]
        if cost[k] < limit and free:
            items[UP if first else DOWN].append(k)
            takers, givers = takers | {k}, givers | {k}
    rises = [slope[k] if high[k] <= y else (phi_y - phi_low[k]) / (y - low[k]) for k in takers if low[k] < y]
    falls = [slope[k] if low[k] >= y else (phi_high[k] - phi_y) / (high[k] - y) for k in givers if high[k] > y]
    takes, gives = min(rises, default=1e300) - slope[at], slope[at] - max(falls, default=-1e300)
    return items[DOWN], items[UP], down, up, max(takes, 0.0), max(gives, 0.0)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.sampled_from([*KINDS, "parts"]),
    st.integers(2, 5),
    st.integers(2, MANY),
    st.sampled_from([1e-9, 1e-4, 0.01, 0.1, 1.0, 10.0]),
    st.integers(0, 2**32 - 1),
)
def test_items_and_champions_are_those_of_the_definitions(kind, members, classes, limit, seed):
    m, bounds, order = row_of(kind, members, classes, seed)
    if m == 0:
        return
    at = seed % m
    items = room_for_items()
    counts = collected(m, OpenClasses(*bounds, order), at, 0.1, limit, items)
    downs, ups, *rest = expected(m, bounds, at, limit)
    assert counts[2:4] == tuple(rest[:2])
    np.testing.assert_allclose(counts[4:], rest[2:], rtol=1e-9, atol=1e-9)
    for side, places in ((DOWN, downs), (UP, ups)):
        number = counts[side]
        assert items.place[side, :number].tolist() == places
        np.testing.assert_array_equal(items.low[side, :number], bounds[0, places])
        np.testing.assert_array_equal(items.high[side, :number], bounds[1, places])
        np.testing.assert_allclose(
            items.away[side, :number], abs(bounds[4, places] - bounds[4, at]), rtol=0, atol=1e-12
        )
        for i, k in enumerate(places):
            kept = bounds[:2, places[i + 1 :]]
            same = bounds[:2, [k]] >= kept if side == DOWN else bounds[:2, [k]] <= kept
            bits = sum(1 << int(i + 1 + j) for j in np.flatnonzero(same.all(axis=0)))
            assert items.keeps[side, i] == bits


@pytest.mark.parametrize("classes", [2 * MOST + 1, 3 * MOST])
def test_too_many_items_are_not_enumerated(classes):
    """No class dominates another, none is dear, and all may be raised."""
    m, bounds, order = row_of("flat", 2, classes, 0)
    reach = np.linspace(0.2, 0.9, m) / m
    bounds[0, :m], bounds[1, :m] = 1 / m - reach, 1 / m + reach
    bounds[2], bounds[3] = phi_pair(bounds[0], bounds[1])
    bounds[4, :m] = ((bounds[3] - bounds[2])[:m]) / (2 * reach)
    counts = collected(m, OpenClasses(*bounds, order), m // 2, 1.0, 10.0, room_for_items())
    assert counts[:2] == (MOST + 1, MOST + 1)
