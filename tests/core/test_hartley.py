"""Generalized Hartley against the sum over all subsets, its laws and its certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import generalized_hartley, probability_intervals
from credalens.core import hartley
from tests import oracles
from tests.strategies import batch_of, ensembles


@given(ensembles(max_classes=10))
def test_equals_the_moebius_sum(members):
    low, high = probability_intervals(members)
    assert abs(generalized_hartley(low, high) - oracles.generalized_hartley(low, high)) <= 1e-12


@pytest.mark.parametrize("classes", [12, 14, 16])
@pytest.mark.parametrize("kind", ["flat", "peaked", "one_hot"])
def test_equals_the_moebius_sum_up_to_sixteen_classes(classes, kind):
    batch = batch_of(kind, 4, 1, classes)[:, 0]
    low, high = probability_intervals(batch)
    assert abs(generalized_hartley(low, high) - oracles.generalized_hartley(low, high)) <= 1e-12


@given(ensembles(max_classes=11), st.sampled_from([1e-2, 1e-3, 1e-4]))
def test_the_certified_bracket_holds_the_exact_value(members, tolerance):
    low, high = probability_intervals(members)
    exact = oracles.generalized_hartley(low, high)
    below, above = (x[0] for x in hartley.certified_bits(low[None], high[None], tolerance))
    assert above - below <= max(tolerance, 2e-4)  # the budget is ample for the default; less may not be reached
    assert below - 1e-12 <= exact <= above + 1e-12


@pytest.mark.parametrize("kind", ["flat", "peaked", "one_hot", "tiny"])
@pytest.mark.parametrize("members", [2, 5, 200])
def test_more_than_the_budget_allows_is_not_reached_and_the_bracket_says_so(kind, members):
    low, high = probability_intervals(batch_of(kind, members, 1, 11))
    below, above = hartley.certified_bits(low, high, 0.0)
    assert 0 < above - below <= 2e-4  # the documentation says what the worst was
    assert below - 1e-12 <= oracles.generalized_hartley(low[0], high[0]) <= above + 1e-12


@pytest.mark.parametrize("kind", ["flat", "peaked", "sparse", "mixed", "one_hot", "agreeing", "rounded"])
@pytest.mark.parametrize("classes", [17, 40, 100, 300])
def test_many_classes_are_certified_to_a_thousandth_of_a_bit(kind, classes):
    low, high = probability_intervals(batch_of(kind, 5, 2, classes))
    value, (below, above) = generalized_hartley(low, high, return_bounds=True)
    assert (above - below <= 1e-3).all()
    assert (below <= value).all()
    assert (value <= above).all()
    assert (below >= 0).all()
    assert (above <= math.log2(classes)).all()


def test_widths_on_the_grid():
    # Each width is a whole number of the grid's cells, up to rounding.
    lower, upper = np.zeros(17), np.zeros(17)
    lower[:2], upper[:3] = 0.1, (0.6, 0.9, 0.4)
    value, (below, above) = generalized_hartley(lower, upper, return_bounds=True)
    assert above - below <= 1e-3
    assert abs(value - oracles.generalized_hartley(lower, upper)) <= 5e-4


@given(
    st.integers(17, 60),
    st.integers(2, 6),
    st.integers(2, 9),
    st.sampled_from([4, 8, 10, 16, 20, 32, 50, 64, 100]),
    st.integers(0, 2**32 - 1),
)
def test_votes_are_certified_to_a_thousandth_of_a_bit(classes, members, possible, parts, seed):
    rng = np.random.default_rng(seed)
    votes = np.zeros((members, classes))
    votes[:, rng.choice(classes, possible, replace=False)] = rng.multinomial(
        parts, rng.dirichlet(np.ones(possible)), members
    )
    low, high = probability_intervals(votes / parts)
    value, (below, above) = generalized_hartley(low, high, return_bounds=True)
    assert above - below <= 1e-3
    assert below <= value <= above
    assert below - 1e-12 <= oracles.generalized_hartley(low, high) <= above + 1e-12


@pytest.mark.parametrize("parts", [10, 20, 64])
def test_votes_for_many_classes_are_certified_to_a_thousandth_of_a_bit(parts):
    rng = np.random.default_rng(parts)
    votes = rng.multinomial(parts, rng.dirichlet(np.full(40, 0.3), 200), (4, 200)) / parts
    _, (below, above) = generalized_hartley(*probability_intervals(votes), return_bounds=True)
    assert (above - below <= 1e-3).all()


def test_a_thousand_classes_are_certified():
    low, high = probability_intervals(np.concatenate([batch_of("flat", 5, 1, 1000), batch_of("peaked", 5, 1, 1000)], 1))
    _, (below, above) = generalized_hartley(low, high, return_bounds=True)
    assert (above - below <= 1e-3).all()


@pytest.mark.parametrize("classes", [2, 5, 16, 17, 100])
def test_extremes(classes):
    point = np.full(classes, 1 / classes)
    assert abs(generalized_hartley(point, point)) <= 1e-12
    low, high = np.zeros(classes), np.ones(classes)
    assert abs(generalized_hartley(low, high) - math.log2(classes)) <= (1e-12 if classes <= 16 else 1e-3)


def test_two_classes_by_hand():
    # m({0}) = l_0, m({1}) = l_1, m(both) = 1 - l_0 - l_1, and log2 2 = 1.
    assert math.isclose(generalized_hartley([0.2, 0.3], [0.7, 0.8]), 0.5)


@given(ensembles(max_classes=9), st.integers(0, 2**32 - 1))
def test_labels_do_not_matter(members, seed):
    order = np.random.default_rng(seed).permutation(members.shape[1])
    one, two = (
        generalized_hartley(*probability_intervals(members)),
        generalized_hartley(*probability_intervals(members[:, order])),
    )
    assert abs(one - two) <= 1e-12


@given(ensembles(max_classes=9, max_members=5))
def test_adding_a_member_widens(members):
    fewer = probability_intervals(members[:1])
    assert generalized_hartley(*probability_intervals(members)) >= generalized_hartley(*fewer) - 1e-12


def test_cardinality_weights_by_hand():
    # C = 3: c_1 = log2 1 - 2 log2 2 + log2 3 = log2 3 - 2, c_2 = log2 2 - log2 3 = 1 - log2 3.
    np.testing.assert_allclose(
        hartley.cardinality_weights(3), [0, 2 - math.log2(3), math.log2(3) - 1, 0], rtol=0, atol=1e-15
    )


def test_quadrature_tails_are_the_integrals():
    from scipy.integrate import quad

    u, entire, exponential = hartley.quadrature()
    for j in (0, 2000, 5000):
        one, _ = quad(lambda x: (1 - x) / (x * -math.log(x)), u[j], 1 - 1e-12)
        two, _ = quad(lambda s: math.exp(-s) / s, -math.log(u[j]), np.inf)  # u = exp(-s)
        assert math.isclose(entire[j], one, rel_tol=1e-6)
        assert math.isclose(exponential[j], two, rel_tol=1e-6)


def test_base_changes_the_unit():
    low, high = probability_intervals(batch_of("flat", 3, 1, 6)[:, 0])
    assert math.isclose(generalized_hartley(low, high, base=math.e), generalized_hartley(low, high) * math.log(2))
