"""Maximum mean imprecision against the sum over all events, its laws and its certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from credalens import maximum_mean_imprecision, probability_intervals, wrap
from credalens.core import imprecision
from tests import oracles
from tests.strategies import KINDS, batch_of, ensembles


@given(ensembles(max_classes=9))
def test_equals_the_largest_gap_over_all_events(members):
    low, high = probability_intervals(members)
    assert abs(maximum_mean_imprecision(low, high) - oracles.maximum_mean_imprecision(low, high)) <= 1e-12


@given(ensembles())
def test_is_zero_for_one_distribution_and_at_most_one(members):
    assert maximum_mean_imprecision(members[0], members[0]) == 0
    assert 0 <= maximum_mean_imprecision(*probability_intervals(members)) <= 1


@given(ensembles())
def test_another_member_never_lowers_it(members):
    fewer = members[:-1] if len(members) > 1 else members
    below, above = (maximum_mean_imprecision(*probability_intervals(m)) for m in (fewer, members))
    assert below <= above + 1e-12


@given(ensembles())
def test_is_at_least_the_largest_total_variation_between_members(members):
    distance = 0.5 * np.abs(members[:, None] - members[None]).sum(axis=-1).max()
    assert maximum_mean_imprecision(*probability_intervals(members)) >= distance - 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [3, 4, 6, 10, 20])
def test_of_two_members_it_is_their_total_variation(classes, dtype):
    """The classes that each favours are a partition of the widths into halves, which rounding must not hide."""
    members = batch_of("flat", 2, 2000, classes, seed=classes).astype(dtype)
    distance = 0.5 * np.abs(members[0].astype(np.float64) - members[1]).sum(axis=-1)
    value = maximum_mean_imprecision(*probability_intervals(members))
    np.testing.assert_allclose(value, distance, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [20, 150])
def test_many_classes_are_certified(kind, classes):
    low, high = probability_intervals(batch_of(kind, 4, 20, classes))
    value, (below, above) = maximum_mean_imprecision(low, high, return_bounds=True)
    assert (below == value).all()
    assert (above - below <= 1e-12).all()


def test_a_spent_budget_leaves_a_bracket(monkeypatch):
    rng = np.random.default_rng(0)
    members = rng.dirichlet(np.ones(9), (3, 200))
    low, high = probability_intervals(members)
    exact = maximum_mean_imprecision(low, high)
    monkeypatch.setattr(imprecision, "MAX_NODES", 3)
    with pytest.warns(RuntimeWarning, match=r"of 200 rows are not certified after max_nodes=3: imprecision") as caught:
        value, (below, above) = maximum_mean_imprecision(low, high, return_bounds=True)
    number, gap = int((above - below > 1e-9).sum()), float((above - below).max())
    assert number > 0
    assert str(caught[0].message).startswith(f"{number} of 200")
    assert f"too low by up to {gap:.3g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert ((below <= exact + 1e-12) & (exact <= above + 1e-12)).all()
    assert (value == below).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [2, 25, 40, 1000])
def test_the_score_of_two_members_needs_no_search(classes, dtype, monkeypatch):
    monkeypatch.setattr(imprecision, "MAX_NODES", 0)
    members = batch_of("flat", 2, 200, classes, seed=classes).astype(dtype)
    distance = 0.5 * np.abs(members[0].astype(np.float64) - members[1]).sum(axis=-1)
    value = wrap(members).score("imprecision")
    np.testing.assert_allclose(value, distance, rtol=0, atol=1e-14 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-16])
@pytest.mark.parametrize(("classes", "distinct"), [(21, 1), (101, 1), (41, 2), (60, 3)])
def test_equal_widths_need_hardly_a_search(classes, distinct, noise, monkeypatch):
    """An odd number of equal widths has no partition into halves, and all subsets of one size are alike."""
    rng = np.random.default_rng(classes)
    widths = np.resize(rng.random(distinct), classes)
    low = np.full((20, classes), 1 / classes - 0.5 * (widths / widths.sum()))
    low, high = np.maximum(low, 0), low + widths / widths.sum() * (1 + noise * rng.normal(size=low.shape))
    monkeypatch.setattr(imprecision, "MAX_NODES", 5000)
    value, (below, above) = maximum_mean_imprecision(low, high, return_bounds=True)
    assert (above - below <= 1e-12).all()
    if distinct == 1:
        np.testing.assert_allclose(value, np.minimum(classes // 2 / classes, 1 - low.sum(axis=-1)), atol=1e-12)


@pytest.mark.parametrize("noise", [1e-13, 1e-11, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("classes", [20, 21, 40, 41, 101, 1000])
def test_nearly_equal_widths_need_hardly_a_search(classes, noise, monkeypatch):
    """An even number is halved by differences of differences; of an odd one no half can hold more than half rounded down."""
    rng = np.random.default_rng(classes)
    low = np.full((20, classes), 0.5 / classes)
    high = low + 1 / classes * (1 + noise * rng.normal(size=low.shape))
    monkeypatch.setattr(imprecision, "MAX_NODES", 5000)
    value, (below, above) = maximum_mean_imprecision(low, high, return_bounds=True)
    assert (above - below <= 1e-9).all()
    np.testing.assert_allclose(value, classes // 2 / classes, atol=noise)


def test_rows_that_stay_open_are_counted_by_score(monkeypatch):
    prediction = wrap(np.random.default_rng(0).dirichlet(np.ones(9), (3, 200)))
    monkeypatch.setattr(imprecision, "MAX_NODES", 3)
    with pytest.warns(RuntimeWarning, match=r"of 200 rows are not certified after max_nodes=3: imprecision") as caught:
        prediction.score("imprecision")
    assert caught[0].filename == __file__
