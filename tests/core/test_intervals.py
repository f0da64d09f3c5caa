"""Probability intervals, reachability, vertices, intersection probability, PIA."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import (
    ProbabilityIntervals,
    approximate_intervals,
    credal_decision,
    generalized_hartley,
    intersection_probability,
    lower_entropy,
    probability_intervals,
    upper_entropy,
)
from tests import oracles
from tests.strategies import batch_of, ensembles

WEATHER = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])


@given(ensembles(max_classes=20))
def test_intervals_are_the_extremes_and_hold_every_member(members):
    intervals = probability_intervals(members)
    np.testing.assert_allclose(intervals.lower, members.min(axis=0), atol=1e-14)
    np.testing.assert_allclose(intervals.upper, members.max(axis=0), atol=1e-14)
    assert intervals.is_reachable
    assert all(intervals.contains(p) for p in members)
    assert intervals.lower.sum() <= 1 + 1e-12
    assert intervals.upper.sum() >= 1 - 1e-12


def test_contains_says_no():
    intervals = probability_intervals(WEATHER)
    assert not intervals.contains([0.05, 0.5, 0.45])
    assert intervals.contains([0.15, 0.15, 0.7])
    batch = ProbabilityIntervals(np.tile([0.1, 0.2], (3, 1)), np.tile([0.8, 0.9], (3, 1)))
    np.testing.assert_array_equal(batch.contains([[0.5, 0.5], [0.05, 0.95], [0.1, 0.9]]), [True, False, True])


def test_contains_takes_any_number_of_distributions_and_names_a_misfit():
    batch = batch_of("flat", 3, 4, 5)
    intervals = probability_intervals(batch)
    assert intervals.contains(batch).shape == (3, 4)
    assert intervals.contains(batch).all()
    assert intervals.contains(batch[0, 0]).tolist()[0]
    for misfit in (np.full((4, 3), 1 / 3), np.full((7, 5), 0.2), 0.3):
        with pytest.raises(ValueError, match="to go with intervals of shape"):
            intervals.contains(misfit)


def test_lists_become_arrays():
    intervals = ProbabilityIntervals([0.1, 0.2], [0.8, 0.9])
    assert intervals.lower.shape == intervals.upper.shape == (2,)


@given(ensembles(max_classes=12))
def test_intersection_probability_is_a_distribution_inside_the_bounds(members):
    low, high = probability_intervals(members)
    p = intersection_probability(low, high)
    assert abs(p.sum() - 1) <= 1e-12
    assert (p >= low).all()
    assert (p <= high + 1e-15).all()
    width = high - low
    if width.sum() > 1e-12:
        alpha = (1 - low.sum()) / width.sum()
        np.testing.assert_allclose(p, low + alpha * width, atol=1e-14)


def test_intersection_probability_by_hand():
    # alpha = (1 - .4) / (.6 + .5 + .5) = .375
    np.testing.assert_allclose(
        intersection_probability([0.1, 0.1, 0.2], [0.7, 0.6, 0.7]), [0.325, 0.2875, 0.3875], atol=1e-15
    )


def test_agreeing_members_are_returned_as_they_are():
    p = np.array([0.1, 0.2, 0.7])
    np.testing.assert_array_equal(intersection_probability(p, p), p)


def test_unreachable_bounds_are_found_and_tightened():
    # Class 0 can be at most 1 - .5 = .5, since class 1 is at least .5; class 1 at least 1 - .9 - .1 = 0.
    loose = ProbabilityIntervals([0.0, 0.5, 0.0], [0.9, 0.6, 0.1])
    assert not loose.is_reachable
    tight = loose.tighten()
    np.testing.assert_allclose(tight.lower, [0.3, 0.5, 0.0])
    np.testing.assert_allclose(tight.upper, [0.5, 0.6, 0.1])
    assert tight.is_reachable


@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_tightening_keeps_the_set_and_reaches_every_bound(classes, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes))
    low, high = np.clip(p - rng.random(classes) * 0.4, 0, 1), np.clip(p + rng.random(classes) * 0.4, 0, 1)
    tight = ProbabilityIntervals(low, high).tighten()
    assert tight.is_reachable
    for k in range(classes):
        assert math.isclose(tight.lower[k], oracles.lower_probability(low, high, [k]), abs_tol=1e-9)
        others = [j for j in range(classes) if j != k]
        assert math.isclose(tight.upper[k], 1 - oracles.lower_probability(low, high, others), abs_tol=1e-9)


@given(ensembles(max_classes=6))
def test_vertices_are_extreme_and_span_the_bounds(members):
    intervals = probability_intervals(members)
    found = intervals.vertices()
    assert len(np.unique(np.round(found, 11), axis=0)) == len(found)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-11)
    np.testing.assert_allclose(found.min(axis=0), intervals.lower, atol=1e-11)
    np.testing.assert_allclose(found.max(axis=0), intervals.upper, atol=1e-11)
    assert math.isclose(oracles.entropy(found).min(), lower_entropy(*intervals), abs_tol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tightening_bounds_that_agree_up_to_rounding_lets_none_cross(dtype):
    low, high = probability_intervals(np.repeat(batch_of("peaked", 1, 2000, 2), 3, axis=0).astype(dtype))
    tight = ProbabilityIntervals(low, high).tighten()
    assert (tight.lower <= tight.upper).all()
    assert ProbabilityIntervals(*tight).is_reachable.all()


def test_vertices_of_a_triangle_cut_at_three_corners():
    found = probability_intervals(WEATHER).vertices()
    expected = {(0.1, 0.2, 0.7), (0.1, 0.6, 0.3), (0.2, 0.1, 0.7), (0.2, 0.6, 0.2), (0.7, 0.1, 0.2)}
    assert {tuple(np.round(v, 9)) for v in found} == expected
    batch = ProbabilityIntervals(np.zeros((2, 3)), np.ones((2, 3))).vertices()
    assert [len(v) for v in batch] == [3, 3]


@given(ensembles(max_classes=12), st.integers(2, 12))
def test_approximation_is_never_empty_and_holds_the_merged_members(members, classes):
    low, high = probability_intervals(members)
    reduced = approximate_intervals(low, high, classes)
    assert reduced.is_reachable
    assert reduced.lower.sum() <= 1 + 1e-9
    assert reduced.upper.sum() >= 1 - 1e-9
    if classes >= len(low):
        np.testing.assert_array_equal(reduced.lower, low)
        np.testing.assert_array_equal(reduced.upper, high)
        return
    order = np.argsort(-intersection_probability(low, high), kind="stable")
    kept = members[:, order[: classes - 1]]
    merged = np.c_[kept, 1 - kept.sum(axis=1)]
    assert all(reduced.contains(np.clip(p, 0, 1) / np.clip(p, 0, 1).sum()) for p in merged)


def test_the_printed_approximation_is_empty_and_the_sound_one_is_not():
    low, high = np.array([0.6, 0.1, 0.1]), np.array([0.8, 0.2, 0.2])
    # As printed, line 3 sums the selected group for r_L and the rest for 1 - sum u, exchanged.
    printed_low = max(1 - high[1:].sum(), low[:1].sum())
    printed_high = min(1 - low[1:].sum(), high[:1].sum())
    assert (printed_low, printed_high) == (0.6, 0.8)
    assert low[0] + printed_low > 1  # no distribution is left
    reduced = approximate_intervals(low, high, 2)
    np.testing.assert_allclose(reduced.lower, [0.6, 0.2])
    np.testing.assert_allclose(reduced.upper, [0.8, 0.4])


def test_the_printed_approximation_is_mostly_empty_on_peaked_rows():
    low, high = probability_intervals(batch_of("peaked", 5, 300, 100))
    order = np.argsort(-intersection_probability(low, high), axis=-1)
    low, high = np.take_along_axis(low, order, -1), np.take_along_axis(high, order, -1)
    r_low = np.maximum(1 - high[:, 19:].sum(-1), low[:, :19].sum(-1))
    r_high = np.minimum(1 - low[:, 19:].sum(-1), high[:, :19].sum(-1))
    empty = (r_low > r_high) | (low[:, :19].sum(-1) + r_low > 1) | (high[:, :19].sum(-1) + r_high < 1)
    assert empty.mean() > 0.6
    assert approximate_intervals(low, high, 20).is_reachable.all()


def test_approximation_keeps_the_order_of_uncertainty():
    batch = batch_of("peaked", 5, 50, 30)
    low, high = probability_intervals(batch)
    coarse = approximate_intervals(low, high, 5)
    assert (upper_entropy(*coarse) <= upper_entropy(low, high) + 1e-9).all()


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_member_axis_moves_the_members(axis):
    batch = batch_of("flat", 4, 6, 3)
    moved = np.moveaxis(batch, 0, axis)
    np.testing.assert_array_equal(
        probability_intervals(moved, member_axis=axis).lower, probability_intervals(batch).lower
    )


@pytest.mark.parametrize(
    "function",
    [
        upper_entropy,
        lower_entropy,
        generalized_hartley,
        intersection_probability,
        ProbabilityIntervals,
        functools.partial(approximate_intervals, classes=2),
        functools.partial(credal_decision, rule="maximality"),
    ],
)
def test_functions_of_bounds_take_them_by_name(function):
    low, high = probability_intervals(WEATHER)
    by_name, by_place = function(upper=high, lower=low), function(low, high)
    if isinstance(by_name, ProbabilityIntervals):
        by_name, by_place = tuple(by_name), tuple(by_place)
    np.testing.assert_array_equal(by_name, by_place)
