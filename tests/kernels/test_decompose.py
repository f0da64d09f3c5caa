"""Rows settled without branch and bound: the value is the optimum, and few rows are left open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import lower_entropy
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels.decompose import decompose_bounds, decompose_members
from credalens.kernels.lower.enumeration import flips_workspace
from credalens.kernels.lower.records import enumerate_records, records_workspace
from credalens.kernels.lower.solve import search_workspace
from tests import oracles
from tests.strategies import KINDS, batch_of


def settled(members, max_nodes=MAX_NODES):
    """(lowest entropy, its bound, which rows are left to branch and bound)."""
    number, rows, classes = members.shape
    class_outputs, row_outputs = tuple(np.empty((4, rows, classes))), tuple(np.empty((3, rows)))
    records, workspace = records_workspace(rows, classes), search_workspace(classes)
    size = decompose_members(
        members, 0, rows, 1e-5, TOLERANCE, class_outputs, row_outputs, records, workspace, np.empty(number)
    )
    return enumerated(records, size, max_nodes, *row_outputs[1:])


def enumerated(records, size, max_nodes, value, bound):
    open_rows, left = np.empty(len(value), np.int64), np.zeros(len(value), bool)
    count = enumerate_records(records, size, TOLERANCE, max_nodes, value, bound, open_rows, flips_workspace())
    left[open_rows[:count]] = True
    return value, bound, left


def exact(members):
    """The lowest entropy of every row, by trying all vertices."""
    bounds = zip(members.min(axis=0), members.max(axis=0), strict=True)
    return np.array([oracles.lower_entropy(low, high) for low, high in bounds])


@settings(derandomize=True, deadline=None)
@given(st.sampled_from(KINDS), st.integers(2, 5), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_what_is_settled_is_the_best_vertex(kind, members, classes, seed):
    p = batch_of(kind, members, 20, classes, seed=seed)
    value, bound, left = settled(p)
    expected = exact(p)
    assert not left.any()
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-10)
    assert (value - bound).max() <= 1e-10
    assert (bound <= expected + 1e-10).all()


@settings(derandomize=True, deadline=None)
@given(st.sampled_from(KINDS), st.integers(2, 9), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_value_and_bound_enclose_the_optimum_whatever_the_budget(kind, classes, max_nodes, seed):
    p = batch_of(kind, 4, 20, classes, seed=seed)
    value, bound, _ = settled(p, max_nodes)
    expected = exact(p)
    assert (value >= expected - 1e-10).all()
    assert (bound <= expected + 1e-10).all()


@pytest.mark.parametrize("classes", [8, 10, 16, 17, 20])
@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_what_is_settled_is_what_lower_entropy_finds(classes, concentration):
    """Without and with the minimiser: the latter skips the root, and keeps no class in place."""
    p = np.random.default_rng(classes).dirichlet(np.full(classes, concentration), (5, 300))
    value, _, left = settled(p)
    expected = lower_entropy(p.min(axis=0), p.max(axis=0))
    np.testing.assert_allclose(value[~left], expected[~left], rtol=0, atol=1e-11)
    assert (value[left] >= expected[left] - 1e-11).all()


@pytest.mark.parametrize("zeros", [0, 3, 11])
@pytest.mark.parametrize("classes", [3, 8, 10, 16])
def test_classes_without_mass_change_nothing(classes, zeros):
    """Short rows are worked on in place, longer ones gathered: the same numbers, wherever the empty classes are."""
    p = np.concatenate([batch_of(kind, 4, 20, classes, seed=classes) for kind in KINDS], axis=1)
    order = np.random.default_rng(zeros).permutation(classes + zeros)
    more = np.concatenate([p, np.zeros((*p.shape[:2], zeros))], axis=2)[..., order].copy(order="C")
    np.testing.assert_allclose(settled(more)[0], settled(p)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 8, 9, 16, 17, 40])
def test_bounds_and_their_members_have_the_same_entropies(classes):
    p = np.concatenate([batch_of(kind, 3, 10, classes, seed=classes) for kind in KINDS], axis=1)
    value, bound, left = settled(p)
    low, high, point = p.min(axis=0), p.max(axis=0), np.empty(p.shape[1:])
    row_outputs, workspace = tuple(np.empty((3, len(low)))), search_workspace(classes)
    records = records_workspace(len(low), classes)
    size = decompose_bounds(low, high, TOLERANCE, point, row_outputs, records, workspace)
    again = enumerated(records, size, MAX_NODES, *row_outputs[1:])
    np.testing.assert_allclose(again[0], value, rtol=0, atol=1e-13)
    np.testing.assert_allclose(again[1], bound, rtol=0, atol=2e-12)
    np.testing.assert_array_equal(again[2], left)


def test_classes_that_look_the_same_are_told_apart():
    """Ties of slope, of bounds, and classes without width, in every position of f."""
    base = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.3, 0.3, 0.1, 0.1, 0.1], [0.2, 0.2, 0.2, 0.2, 0.1, 0.1]])
    rows = [base[:, np.roll(np.arange(6), shift)] for shift in range(6)]
    value, bound, left = settled(np.ascontiguousarray(np.stack(rows, axis=1)))
    assert not left.any()
    np.testing.assert_allclose(value, oracles.lower_entropy(base.min(axis=0), base.max(axis=0)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(bound, value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [10, 20])
def test_no_row_is_left_to_branch_and_bound_even_if_predictions_are_flat(classes):
    p = np.random.default_rng(0).dirichlet(np.ones(classes), (5, 2000))
    assert not settled(p)[2].any()


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 4), st.integers(3, 7), st.sampled_from([4, 10, 16]), st.integers(0, 2**32 - 1))
def test_flipped_classes_often_use_up_all_there_is(members, classes, parts, seed):
    """Probabilities in sixteenths, where sums are exact, and in tenths, where they are off by the last digit."""
    p = np.random.default_rng(seed).multinomial(parts, np.full(classes, 1 / classes), (members, 20)) / parts
    value, bound, left = settled(p)
    expected = exact(p)
    assert not left.any()
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-10)
    assert (bound <= expected + 1e-10).all()


def test_a_vertex_with_no_class_between_its_bounds():
    """Found by trial among a million: two classes flipped, f down, and nothing left."""
    p = np.array([[0.1, 0.1, 0.2, 0.1, 0.5, 0.0], [0.2, 0.3, 0.1, 0.2, 0.0, 0.2], [0.1, 0.4, 0.1, 0.1, 0.2, 0.1]])
    value, _, left = settled(p[:, None])
    assert not left.any()
    assert abs(value[0] - oracles.lower_entropy(p.min(axis=0), p.max(axis=0))) <= 1e-11
