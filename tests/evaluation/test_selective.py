"""Accuracy-rejection curves against the mean over all orders of ties."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.evaluation import accuracy_rejection_curve

lawful = settings(derandomize=True, deadline=None, max_examples=60)
cases = st.lists(st.tuples(st.integers(0, 3).map(float), st.booleans()), min_size=1, max_size=6)
longer = st.lists(st.tuples(st.integers(0, 9).map(float), st.booleans()), min_size=1, max_size=40)


def columns(case):
    uncertainty, correct = zip(*case, strict=True)
    return np.array(uncertainty), np.array(correct)


def accuracies(correct_in_order):
    """Accuracy when n, n - 1, ..., 1 of the least uncertain are kept."""
    return [np.mean(correct_in_order[:k]) for k in range(len(correct_in_order), 0, -1)]


@lawful
@given(cases)
def test_curve_is_the_mean_over_all_orders_of_ties(case):
    orders = [p for p in itertools.permutations(case) if all(x[0] <= y[0] for x, y in itertools.pairwise(p))]
    expected = np.mean([accuracies([right for _, right in order]) for order in orders], axis=0)
    curve = accuracy_rejection_curve(*columns(case))
    np.testing.assert_allclose(curve.accuracy, expected, atol=1e-12)
    np.testing.assert_allclose(curve.rejected, np.arange(len(case)) / len(case), atol=1e-12)
    assert curve.area == pytest.approx(expected.mean())


@lawful
@given(longer)
def test_laws_of_the_area(case):
    uncertainty, correct = columns(case)
    curve = accuracy_rejection_curve(uncertainty, correct)
    perfect = accuracy_rejection_curve((~correct).astype(float), correct)
    worst = accuracy_rejection_curve(correct.astype(float), correct)
    assert curve.accuracy[0] == pytest.approx(correct.mean())
    assert worst.area - 1e-12 <= curve.area <= curve.best_area + 1e-12
    assert perfect.area == pytest.approx(curve.best_area)


@lawful
@given(longer, st.randoms(use_true_random=False))
def test_order_of_samples_does_not_matter(case, random):
    one = accuracy_rejection_curve(*columns(case))
    other = accuracy_rejection_curve(*columns(random.sample(case, len(case))))
    np.testing.assert_array_equal(one.accuracy, other.accuracy)


def test_constant_uncertainty_gains_nothing():
    correct = np.array([True, False, False, True, True])
    curve = accuracy_rejection_curve(np.full(5, 2.0), correct)
    np.testing.assert_allclose(curve.accuracy, 0.6)
    assert curve.area == pytest.approx(0.6)


def test_curve_by_hand():
    # Kept: all four 2/4, without the worst 2/3, then half of the tie (1 + 0.5) / 2, then the best alone.
    curve = accuracy_rejection_curve([0.3, 0.9, 0.1, 0.3], [True, False, True, False])
    np.testing.assert_allclose(curve.accuracy, [1 / 2, 2 / 3, 3 / 4, 1])
    assert curve.area == pytest.approx((1 / 2 + 2 / 3 + 3 / 4 + 1) / 4)
    assert curve.best_area == pytest.approx((1 / 2 + 2 / 3 + 1 + 1) / 4)


def test_thinning_keeps_ends_and_area():
    rng = np.random.default_rng(0)
    uncertainty, correct = rng.random(5000), rng.random(5000) < 0.8
    full, thinned = (accuracy_rejection_curve(uncertainty, correct, points=p) for p in (None, 50))
    assert len(thinned.rejected) <= 50 < len(full.rejected) == full.n == thinned.n
    assert (thinned.area, thinned.best_area) == (full.area, full.best_area)
    assert (thinned.rejected[0], thinned.accuracy[0]) == (0.0, full.accuracy[0])
    assert thinned.rejected[-1] == full.rejected[-1]


@pytest.mark.parametrize(
    ("uncertainty", "correct", "error", "message"),
    [
        ([0.1, 0.2], [True], ValueError, r"uncertainty and correct.*\(2,\) and \(1,\)"),
        ([0.1, 0.2], [1, 0], TypeError, "correct must be boolean"),
        ([], np.empty(0, bool), ValueError, "uncertainty holds 0 samples"),
        ([0.1, np.nan], [True, False], ValueError, "NaN"),
    ],
)
def test_bad_curve_input_is_refused(uncertainty, correct, error, message):
    with pytest.raises(error, match=message):
        accuracy_rejection_curve(uncertainty, correct)
