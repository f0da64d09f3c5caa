"""Upper and lower entropy against slow oracles, their laws, their certificates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import lower_entropy, probability_intervals, upper_entropy, wrap
from credalens.core.options import Options, collecting_open_rows, warn_of_all, warn_open_rows
from credalens.kernels.lower import solve
from tests import oracles
from tests.strategies import KINDS, OPEN_ROWS, batch_of, ensembles

WEATHER = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])


def bounds(members):
    return members.min(axis=0), members.max(axis=0)


@given(ensembles(max_classes=30))
def test_upper_entropy_is_the_optimum(members):
    low, high = bounds(members)
    expected, _ = oracles.upper_entropy(low, high)
    value, p = upper_entropy(low, high, return_distribution=True)
    assert abs(value - expected) <= 1e-12
    assert abs(p.sum() - 1) <= 1e-12
    assert (p >= low).all()
    assert (p <= high).all()
    assert abs(oracles.entropy(p) - value) <= 1e-12


@given(ensembles(max_classes=9))
def test_lower_entropy_is_the_lowest_vertex(members):
    low, high = bounds(members)
    value, p, (bound, same) = lower_entropy(low, high, return_distribution=True, return_bounds=True)
    assert abs(value - oracles.lower_entropy(low, high)) <= 1e-9
    assert value - bound <= 1e-9
    assert same == value
    assert abs(p.sum() - 1) <= 1e-12
    assert (p >= low).all()
    assert (p <= high).all()
    assert abs(oracles.entropy(p) - value) <= 1e-11


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [10, 11, 12])
def test_lower_entropy_is_the_lowest_vertex_up_to_twelve_classes(kind, classes):
    for members in (2, 5):
        batch = batch_of(kind, members, 3, classes, seed=classes)
        low, high = batch.min(axis=0), batch.max(axis=0)
        expected = [oracles.lower_entropy(a, b) for a, b in zip(low, high, strict=True)]
        np.testing.assert_allclose(lower_entropy(low, high), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["flat", "peaked", "sparse", "mixed"])
@pytest.mark.parametrize("classes", [20, 50, 100])
def test_lower_entropy_is_certified_for_many_classes(kind, classes):
    batch = batch_of(kind, 5, 10, classes)
    value, (bound, _) = lower_entropy(batch.min(axis=0), batch.max(axis=0), return_bounds=True, max_nodes=200_000)
    assert (value - bound <= 1e-9).all()
    assert (value <= oracles.entropy(batch).min(axis=0) + 1e-12).all()


def test_a_spent_budget_leaves_a_visible_gap_and_a_valid_bound():
    batch = batch_of("flat", 5, 8, 60)
    low, high = batch.min(axis=0), batch.max(axis=0)
    exact = lower_entropy(low, high, max_nodes=500_000)
    with pytest.warns(RuntimeWarning, match=r"of 8 rows are not certified after max_nodes=1"):
        value, (bound, _) = lower_entropy(low, high, return_bounds=True, max_nodes=1)
    assert (value - bound > 1e-6).any()
    assert (bound <= exact + 1e-12).all()
    assert (exact <= value + 1e-12).all()


@pytest.mark.parametrize("wrong", [[0.6, 0.3, 0.2], [0.8, 0.0, 0.2], [0.5, 0.25, np.nan]])
def test_a_minimiser_outside_the_set_is_refused(wrong, monkeypatch):
    def search(*arguments):
        arguments[-1][:] = wrong

    monkeypatch.setattr(solve, "lower_entropy_rows", search)
    with pytest.raises(ArithmeticError, match=r"outside the credal set in row 0: .* sums to"):
        lower_entropy(*bounds(WEATHER))


@pytest.mark.filterwarnings(OPEN_ROWS)
@given(ensembles(max_classes=20), st.sampled_from([1, 20_000]), st.sampled_from([2, 3, math.e]))
def test_the_bound_is_not_above_the_value(members, max_nodes, base):
    value, (bound, _) = lower_entropy(*bounds(members), return_bounds=True, max_nodes=max_nodes, base=base)
    prediction = wrap(members, max_nodes=max_nodes, base=base)
    assert 0 <= bound <= value
    assert 0 <= prediction.aleatoric_bound <= prediction.aleatoric


def test_a_coarse_tolerance_is_kept():
    batch = batch_of("flat", 5, 4, 300)
    value, (bound, _) = lower_entropy(batch.min(axis=0), batch.max(axis=0), return_bounds=True, tolerance=1e-3)
    assert (value - bound <= 1e-3).all()


@given(ensembles(max_classes=12), st.integers(0, 2**32 - 1))
def test_labels_and_member_order_do_not_matter(members, seed):
    rng = np.random.default_rng(seed)
    low, high = bounds(members)
    shuffled = rng.permutation(members)[:, rng.permutation(members.shape[1])]
    for measure in (lower_entropy, upper_entropy):
        assert abs(measure(low, high) - measure(*bounds(shuffled))) <= 1e-12


def test_labels_do_not_matter_for_many_classes():
    rng = np.random.default_rng(0)
    for kind in ("flat", "peaked", "mixed"):
        batch = batch_of(kind, 5, 5, 40, seed=3)
        order = rng.permutation(40)
        one = lower_entropy(batch.min(axis=0), batch.max(axis=0))
        two = lower_entropy(batch.min(axis=0)[:, order], batch.max(axis=0)[:, order])
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)


@given(ensembles(max_classes=20))
def test_members_lie_between_lower_and_upper_entropy(members):
    low, high = bounds(members)
    own = oracles.entropy(members)
    assert lower_entropy(low, high) <= own.min() + 1e-12
    assert upper_entropy(low, high) >= own.max() - 1e-12


@given(ensembles(max_classes=12), ensembles(max_classes=12))
def test_adding_a_member_widens(members, more):
    if members.shape[1] != more.shape[1]:
        more = np.eye(members.shape[1])[:1]
    wider = np.concatenate([members, more])
    assert lower_entropy(*bounds(wider)) <= lower_entropy(*bounds(members)) + 1e-12
    assert upper_entropy(*bounds(wider)) >= upper_entropy(*bounds(members)) - 1e-12


def test_weather_by_hand():
    # Bounds (.1,.1,.2), (.7,.6,.7). The uniform distribution fits, so the highest entropy is log2 3. Vertices such as
    # (.7,.1,.2) have one class up and the others down: H(.7,.1,.2) = 1.1568 is the lowest.
    low, high = bounds(WEATHER)
    assert math.isclose(upper_entropy(low, high), math.log2(3), abs_tol=1e-12)
    lowest = -(0.7 * math.log2(0.7) + 0.1 * math.log2(0.1) + 0.2 * math.log2(0.2))
    assert math.isclose(lower_entropy(low, high), lowest, abs_tol=1e-12)


def test_nested_intervals_need_more_than_a_greedy_fill():
    # Class 0 reaches highest but starts lowest; filling it first gives (.5,.3,.2), filling class 1 first (.1,.6,.3).
    low, high = np.array([0.1, 0.3, 0.2]), np.array([0.5, 0.6, 0.3])
    candidates = {(0.5, 0.3, 0.2), (0.1, 0.6, 0.3), (0.2, 0.6, 0.2), (0.4, 0.3, 0.3)}
    expected = min(float(oracles.entropy(np.array(c))) for c in candidates)
    assert math.isclose(lower_entropy(low, high), expected, abs_tol=1e-12)


def test_one_member_has_one_entropy():
    p = np.array([[0.5, 0.25, 0.25]])
    low, high = bounds(p)
    assert math.isclose(lower_entropy(low, high), 1.5)
    assert math.isclose(upper_entropy(low, high), 1.5)


def test_the_whole_simplex():
    low, high = np.zeros(7), np.ones(7)
    assert math.isclose(lower_entropy(low, high), 0.0, abs_tol=1e-15)
    assert math.isclose(upper_entropy(low, high), math.log2(7))


@pytest.mark.parametrize("base", [2, math.e, 10])
def test_base_changes_the_unit_only(base):
    low, high = bounds(WEATHER)
    for measure in (lower_entropy, upper_entropy):
        assert math.isclose(measure(low, high, base=base), measure(low, high) / math.log2(base))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_results(threads):
    batch = batch_of("peaked", 4, 5000, 11)
    low, high = probability_intervals(batch, threads=threads)
    np.testing.assert_array_equal(lower_entropy(low, high, threads=threads), lower_entropy(low, high, threads=1))
    np.testing.assert_array_equal(upper_entropy(low, high, threads=threads), upper_entropy(low, high, threads=1))


def test_one_warning_has_the_totals_of_each_measure():
    few = Options(max_nodes=7)
    with collecting_open_rows() as collected:
        warn_open_rows(np.array([0.5, 0.0, 1e-3]), 3, few)
        warn_open_rows(np.array([0.25]), 5, few, measure="imprecision")
        warn_open_rows(np.array([0.75]), 1, few)
    with pytest.warns(RuntimeWarning, match="not certified after max_nodes=7") as caught:
        warn_of_all(collected, 1000)
    words = [str(entry.message) for entry in caught]
    assert words[0].startswith("3 of 1,000 rows are not certified")
    assert "up to 0.75 bits" in words[0]
    assert words[1].startswith("1 of 1,000 rows is not certified")
    assert "imprecision may be too low by up to 0.25" in words[1]
