"""The root of the search for rows of many classes: a value that is attained and a bound that is one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.core.options import TOLERANCE
from credalens.kernels.lower.solve import lower_entropy_rows
from tests import oracles


def at_root(lower, upper):
    """(entropy of the vertex found, its certified bound) of each row."""
    value, bound = np.full(len(lower), np.inf), np.full(len(lower), -np.inf)
    lower_entropy_rows(lower, upper, TOLERANCE, 0, value, bound, np.empty((len(lower), 0)))
    return value, bound


@pytest.mark.parametrize("upper", [[0.2, 0.9, 0.1, 0.4], [0.3, 0.9, 0.0, 0.6], [0.4, 0.9, 0.0, 0.6]])
def test_a_break_class_that_takes_all_it_can_is_known_to_be_the_optimum(upper):
    """The class from 0.3 to 0.9 takes the 0.6 that is left. Summed in another order it would leave -1e-16, of no use to a
    bound. Certified at the root, the row is not searched."""
    orders = np.array(list(itertools.permutations(range(4))))
    lower, upper = np.array([0.1, 0.3, 0.0, 0.0])[orders], np.array(upper)[orders]
    value, bound = at_root(lower, upper)
    np.testing.assert_allclose(value, oracles.lower_entropy(lower[0], upper[0]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(bound, value, rtol=0, atol=TOLERANCE)


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 4), st.integers(3, 8), st.sampled_from([5, 7, 10, 16]), st.integers(0, 2**32 - 1))
def test_value_and_bound_enclose_the_lowest_entropy(members, classes, parts, seed):
    """Probabilities in parts, where what is left to give away is often exactly one width, or off by the last digit."""
    p = np.random.default_rng(seed).multinomial(parts, np.full(classes, 1 / classes), (members, 20)) / parts
    lower, upper = p.min(axis=0), p.max(axis=0)
    value, bound = at_root(lower, upper)
    exact = np.array([oracles.lower_entropy(a, b) for a, b in zip(lower, upper, strict=True)])
    assert (value >= exact - 1e-12).all()
    assert (bound <= exact + 1e-12).all()
    assert (bound >= -1e-12).all()


@pytest.mark.parametrize("classes", [40, 100, 300])
def test_widths_that_are_rounding_cost_no_search(classes):
    """Members with a common part: a search would close what the root leaves open, at a hundred times the work."""
    rng = np.random.default_rng(classes)
    few, common = np.zeros((5, 200, classes)), rng.dirichlet(np.full(classes, 5.0), 200)
    few[..., :6] = rng.dirichlet(np.full(6, 0.1), (5, 200))
    p = 0.5 * few + 0.5 * common
    p /= p.sum(axis=-1, keepdims=True)
    lower, upper = p.min(axis=0), p.max(axis=0)
    assert ((upper > lower) & (upper - lower < 1e-12 * upper)).mean() > 0.5
    value, bound = np.full(200, np.inf), np.full(200, -np.inf)
    nodes = lower_entropy_rows(lower, upper, TOLERANCE, 1_000_000, value, bound, np.empty((200, 0)))
    assert (value - bound <= 1e-9).all()
    assert nodes <= 100 * 200
