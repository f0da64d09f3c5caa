"""Rows settled by trying every vertex: the value is the optimum, and branch and bound is seldom needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import lower_entropy
from credalens.core.entropy import TOLERANCE
from credalens.kernels.decompose_few import decompose_rows, open_rows, scratch
from credalens.kernels.lower.flips import settle_rows
from tests import oracles
from tests.strategies import KINDS, batch_of


def settled(members):
    """(lowest entropy, its bound, which rows are left to the search) without the search."""
    _, rows, classes = members.shape
    wide, narrow = tuple(np.empty((4, rows, classes))), tuple(np.empty((3, rows)))
    place, known, roots = open_rows(rows, classes)
    found = decompose_rows(members, 0, rows, 1e-5, TOLERANCE, wide, narrow, place, known, roots, *scratch(classes))
    value, bound = narrow[1][place[:found]], narrow[2][place[:found]]
    settle_rows(known[:found], roots[:found], value, bound)
    narrow[1][place[:found]], narrow[2][place[:found]] = value, bound
    left = np.zeros(rows, bool)
    left[place[:found]] = bound < value - TOLERANCE
    return narrow[1], narrow[2], left


@settings(derandomize=True, deadline=None)
@given(st.sampled_from(KINDS), st.integers(2, 5), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_what_is_settled_is_the_best_vertex(kind, members, classes, seed):
    p = batch_of(kind, members, 20, classes, seed=seed)
    value, bound, left = settled(p)
    exact = np.array([oracles.lower_entropy(a, b) for a, b in zip(p.min(axis=0), p.max(axis=0), strict=True)])
    assert np.abs(value - exact)[~left].max(initial=0.0) <= 1e-10
    assert (value - bound)[~left].max(initial=0.0) <= 1e-10
    assert (value >= exact - 1e-10).all()
    assert (bound <= exact + 1e-10).all()


@pytest.mark.parametrize("classes", [10, 16, 20])
@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_what_is_settled_is_what_branch_and_bound_finds(classes, concentration):
    p = np.random.default_rng(classes).dirichlet(np.full(classes, concentration), (5, 300))
    value, _, left = settled(p)
    expected = lower_entropy(p.min(axis=0), p.max(axis=0))
    np.testing.assert_allclose(value[~left], expected[~left], rtol=0, atol=1e-11)
    assert (value[left] >= expected[left] - 1e-11).all()


def test_classes_that_look_the_same_are_told_apart():
    """Ties of slope, of bounds, and classes without width, in every position of f."""
    base = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.3, 0.3, 0.1, 0.1, 0.1], [0.2, 0.2, 0.2, 0.2, 0.1, 0.1]])
    rows = [base[:, np.roll(np.arange(6), shift)] for shift in range(6)]
    value, bound, left = settled(np.ascontiguousarray(np.stack(rows, axis=1)))
    assert not left.any()
    np.testing.assert_allclose(value, oracles.lower_entropy(base.min(axis=0), base.max(axis=0)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(bound, value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [10, 20])
def test_few_rows_are_left_to_branch_and_bound_even_if_predictions_are_flat(classes):
    """Counted: measured 0.0002 and 0.001."""
    p = np.random.default_rng(0).dirichlet(np.ones(classes), (5, 2000))
    _, _, left = settled(p)
    assert left.mean() < 0.004


def test_rows_with_too_many_sets_are_left_with_valid_bounds():
    """Many narrow classes that all cost little to flip."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(20, 100.0), (8, 200))
    value, bound, left = settled(p)
    assert left.any()
    expected = lower_entropy(p.min(axis=0), p.max(axis=0))
    assert (bound <= expected + 1e-11).all()
    assert (value >= expected - 1e-11).all()


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 4), st.integers(3, 7), st.sampled_from([4, 10, 16]), st.integers(0, 2**32 - 1))
def test_flipped_classes_often_use_up_all_there_is(members, classes, parts, seed):
    """Probabilities in sixteenths, where sums are exact, and in tenths, where they are off by the last digit."""
    p = np.random.default_rng(seed).multinomial(parts, np.full(classes, 1 / classes), (members, 20)) / parts
    value, bound, left = settled(p)
    exact = np.array([oracles.lower_entropy(a, b) for a, b in zip(p.min(axis=0), p.max(axis=0), strict=True)])
    assert not left.any()
    np.testing.assert_allclose(value, exact, rtol=0, atol=1e-10)
    assert (bound <= exact + 1e-10).all()


def test_a_vertex_with_no_class_between_its_bounds():
    """Found by trial among a million: two classes flipped, f down, and nothing left."""
    p = np.array([[0.1, 0.1, 0.2, 0.1, 0.5, 0.0], [0.2, 0.3, 0.1, 0.2, 0.0, 0.2], [0.1, 0.4, 0.1, 0.1, 0.2, 0.1]])
    value, _, left = settled(p[:, None])
    assert not left.any()
    assert abs(value[0] - oracles.lower_entropy(p.min(axis=0), p.max(axis=0))) <= 1e-11
