"""Branch and bound for more classes than all vertices can be tried of, its knapsack, and what a decision implies."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import ProbabilityIntervals, lower_entropy
from credalens.core.options import TOLERANCE
from credalens.kernels.lower import branch
from credalens.kernels.lower.branch import DOWN, FREE, SPLIT, UP, Core, Ring
from credalens.kernels.simd.jit import OPTIONS
from credalens.kernels.simd.phi import phi_pair
from tests import oracles
from tests.kernels.test_enumeration import assert_attained, branched, enumerated
from tests.strategies import KINDS, make_members

SLACK = 1e-11
common = settings(derandomize=True, deadline=None)


def votes(seed, members, rows, classes, parts):
    """Bounds (rows, classes) of members that are whole parts, as integers."""
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), (members, rows))
    counted = np.random.default_rng(seed).multinomial(parts, p)
    return counted.min(axis=0), counted.max(axis=0)


@pytest.mark.parametrize(
    ("members", "classes", "parts"),
    [(2, 13, 1000), (3, 13, 60), (5, 16, 2000), (2, 40, 5000), (3, 40, 3000), (4, 40, 100), (3, 100, 4000)],
)
def test_the_lowest_entropy_of_many_classes(members, classes, parts):
    """By both searches alone and by what users call, against an exact search over whole parts."""
    low, high = votes(classes, members, 8, classes, parts)
    expected = np.array([oracles.lower_entropy_in_parts(a, b, parts) for a, b in zip(low, high, strict=True)])
    lower, upper = low / parts, high / parts
    for value, bound, p in (branched(lower, upper), enumerated(lower, upper)[:3]):
        assert_attained(lower, upper, p, value)
        assert (bound <= expected + SLACK).all()
        assert (value >= expected - SLACK).all()
        closed = value - bound <= TOLERANCE
        assert closed.mean() >= 0.5
        np.testing.assert_allclose(value[closed], expected[closed], rtol=0, atol=SLACK)
    np.testing.assert_allclose(lower_entropy(lower, upper), expected, rtol=0, atol=SLACK)


@common
@given(
    st.integers(2, 5),
    st.integers(13, 24),
    st.sampled_from([12, 30, 100, 1000]),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
)
def test_what_a_spent_budget_leaves_encloses_the_lowest_entropy(members, classes, parts, max_nodes, seed):
    low, high = votes(seed, members, 3, classes, parts)
    value, bound, _ = branched(low / parts, high / parts, max_nodes=max_nodes)
    for row in range(3):
        expected = oracles.lower_entropy_in_parts(low[row], high[row], parts)
        assert bound[row] <= expected + SLACK
        assert value[row] >= expected - SLACK


@numba.njit(**OPTIONS)
def free_all(m, ring):
    branch.free_all(m, ring)


@numba.njit(**OPTIONS)
def decide(kind, f, start, stop, core, m, ring, length, need, base):
    return branch.decide(kind, f, start, stop, core, m, ring, length, need, base)


@numba.njit(**OPTIONS)
def take_back(mark, ring, length):
    return branch.take_back(mark, ring, length)


@numba.njit(**OPTIONS)
def fill(core, m, ring, split, a, b, need, base):
    return branch._fill(core, m, ring, split, a, b, need, base)


class Node:
    """The open classes of a row in order of their slopes, and which of them are decided."""

    def __init__(self, low, high):
        low, high = low[high > low], high[high > low]
        (phi_low,), (phi_high,) = phi_pair(low[None], high[None])
        slope = (phi_high - phi_low) / (high - low)
        order = np.lexsort((low, slope))
        self.m = order.size
        self.core = Core(*(x[order].copy() for x in (low, high, phi_low, phi_high, slope)), np.empty(self.m))
        state, trail, following, previous = np.full((4, self.m + 1), -9)
        self.ring = Ring(state, trail, following, previous)
        free_all(self.m, self.ring)
        self.length, self.split, self.a, self.b = 0, -1, 0.0, 0.0
        self.between = -1  # the class between its bounds in the best vertex, if that is known
        self.mass = 1.0 - low.sum()
        self.need, self.base = self.mass, phi_low.sum()

    def remember(self):
        return self.length, self.need, self.base, self.split, self.a, self.b

    def back_to(self, mark):
        take_back(mark[0], self.ring, self.length)
        self.length, self.need, self.base, self.split, self.a, self.b = mark

    def decide(self, kind, f, start=0.0, stop=0.0):
        if kind == SPLIT:
            self.split, self.a, self.b = f, start, stop
        decided = decide(kind, f, start, stop, self.core, self.m, self.ring, self.length, self.need, self.base)
        self.length, self.need, self.base = decided

    def free(self):
        """The free classes as the ring has them, forwards and backwards."""
        found = []
        for step in (self.ring.following, self.ring.previous):
            found.append([])
            i = step[self.m]
            while i < self.m:
                found[-1].append(int(i))
                i = step[i]
        assert found[0] == found[1][::-1] == np.flatnonzero(self.ring.state[: self.m] == FREE).tolist()
        return found[0]

    def intervals(self):
        """What the decisions leave of every interval."""
        state = self.ring.state[: self.m]
        low = np.where(state == UP, self.core.high, self.core.low)
        high = np.where(state == DOWN, self.core.low, self.core.high)
        if self.split >= 0:
            low[self.split], high[self.split] = self.a, self.b
        return low, high


def cut(low, high, node, rng):
    """A value between, often next to the bound of another class."""
    ends = np.concatenate([node.core.low, node.core.high]) * rng.choice([1 - 1e-6, 1 + 1e-6])
    ends = ends[(ends > low) & (ends < high)]
    return rng.choice(ends) if ends.size and rng.random() < 0.7 else rng.uniform(low, high)


def decisions(node, rng):
    """What a node is split into: a free class goes up, down or between its bounds, below and above some value."""
    free = node.free()
    if node.split >= 0 and (not free or rng.random() < 0.3):
        x = cut(node.a, node.b, node, rng)
        return [(SPLIT, node.split, node.a, x), (SPLIT, node.split, x, node.b)]
    if not free:
        return []
    f = node.between if node.between in free and rng.random() < 0.7 else int(rng.choice(free))
    low, high = node.core.low[f], node.core.high[f]
    x = cut(low, high, node, rng)
    return [(UP, f), (DOWN, f), *([(SPLIT, f, low, x), (SPLIT, f, x, high)] if node.split < 0 else [])]


rows = st.tuples(st.sampled_from([*KINDS, *["wide"] * 5]), st.integers(2, 4), st.integers(0, 2**32 - 1))


def row_of(kind, members, classes, rng):
    """Bounds of members, or intervals of anybody: wide, narrow and one inside the other."""
    if kind == "wide":
        p = rng.dirichlet(np.full(classes, rng.choice([0.3, 1.0])))
        low, high = p * rng.random(classes), np.minimum(p + rng.random(classes) ** rng.choice([1, 4, 12], classes), 1)
        intervals = ProbabilityIntervals(low, high).tighten()
        return intervals.lower, intervals.upper
    p = make_members(kind, members, classes, rng)
    return p.min(axis=0), p.max(axis=0)


@common
@given(rows, st.integers(2, 25), st.integers(0, 5))
def test_the_knapsack_is_the_linear_program(row, classes, depth):
    """At any node: the chord bound, and a vertex of the set whose entropy is the value."""
    kind, members, seed = row
    rng = np.random.default_rng(seed)
    low, high = row_of(kind, members, classes, rng)
    node = Node(low, high)
    points = low[high == low].sum()
    for _ in range(depth):
        choices = decisions(node, rng)
        if choices:
            node.decide(*choices[rng.integers(len(choices))])
    lower, upper = node.intervals()
    found = fill(node.core, node.m, node.ring, node.split, node.a, node.b, node.need - points, node.base)
    closed = 1 - points  # what the open classes have in all
    if not found.feasible:
        assert closed < lower.sum() + 1e-12 or closed > upper.sum() - 1e-12
        return
    expected = oracles.chord_bound(np.append(lower, points), np.append(upper, points))
    if math.isinf(expected):  # by rounding
        assert abs(closed - lower.sum()) < 1e-6 or abs(closed - upper.sum()) < 1e-6
        return
    expected -= oracles.entropy(np.array([points]))
    np.testing.assert_allclose(found.floor, expected, rtol=0, atol=1e-9)
    state = node.ring.state[: node.m]
    p = np.where((state == UP) | ((state == FREE) & (np.arange(node.m) < found.stop)), node.core.high, node.core.low)
    if node.split >= 0:
        p[node.split] = node.b if found.split_full else node.a
    if found.at >= 0:
        p[found.at] = found.x
    np.testing.assert_allclose(p.sum(), closed, rtol=0, atol=1e-12)
    assert (p >= lower).all()
    assert (p <= upper).all()
    np.testing.assert_allclose(oracles.entropy(p), found.value, rtol=0, atol=1e-11)
    assert found.floor <= found.value + 1e-12


@settings(common, max_examples=400)
@given(rows, st.integers(2, 7), st.integers(1, 3))
def test_decisions_leave_the_lowest_vertex_to_one_of_the_nodes(row, classes, depth):
    """Whatever class is decided and wherever its interval is cut, and taking back leaves nothing behind."""
    kind, members, seed = row
    rng = np.random.default_rng(seed)
    low, high = row_of(kind, members, classes, rng)
    if not (high > low).any():
        return
    node = Node(low, high)
    points = low[high == low].sum()
    vertices = oracles.vertices(np.append(node.core.low, points), np.append(node.core.high, points))[:, : node.m]
    entropies = oracles.entropy(vertices)
    best = vertices[entropies.argmin()]
    node.between = int(np.minimum(best - node.core.low, node.core.high - best).argmax())
    kept = np.zeros(len(vertices), bool)

    def search(depth):
        choices = decisions(node, rng) if depth else []
        for choice in choices:
            mark, before = node.remember(), [x.copy() for x in node.ring]
            node.decide(*choice)
            check_sums(node)
            search(depth - 1)
            node.back_to(mark)
            assert node.ring.following.tolist() == before[2].tolist()
            assert node.ring.previous.tolist() == before[3].tolist()
            free = before[0] == FREE
            assert (node.ring.state[free] == FREE).all()
        if not choices:
            lower, upper = node.intervals()
            np.logical_or(kept, ((vertices >= lower - 1e-12) & (vertices <= upper + 1e-12)).all(axis=1), out=kept)

    search(depth)
    assert entropies[kept].min() <= entropies.min() + 1e-10


def check_sums(node):
    """The mass that is left and the entropy with all free classes down, of what is decided."""
    up = node.ring.state[: node.m] == UP
    core = node.core
    np.testing.assert_allclose(node.need, node.mass - (core.high - core.low)[up].sum(), rtol=0, atol=1e-12)
    expected = core.phi_low.sum() + (core.phi_high - core.phi_low)[up].sum()
    np.testing.assert_allclose(node.base, expected, rtol=0, atol=1e-12)
