"""Rows that are hard for the lowest entropy: widths of rounding, intervals that are nearly equal, flat members."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import lower_entropy, wrap
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels.lower.branch import CLASSES_A_NODE, branch_and_bound_rows
from credalens.kernels.lower.solve import NEAR, first_share, merge_near
from credalens.kernels.simd.phi import phi_pair
from tests import oracles
from tests.strategies import batch_of

CLOSED = 1e-11
SAME = 1e-12


def shared_part(rng, rows, classes=100, members=5):
    """Members that share half of their mass and disagree about six classes; also with the shared widths exactly zero."""
    own = np.zeros((members, rows, classes))
    own[..., :6] = rng.dirichlet(np.full(6, 0.1), (members, rows))
    p = 0.5 * own + 0.5 * rng.dirichlet(np.full(classes, 5.0), rows)
    noisy = p / p.sum(axis=-1, keepdims=True)
    low, high = noisy.min(axis=0), noisy.max(axis=0)
    clean_low, clean_high = low.copy(), high.copy()
    clean_low[:, 6:] = clean_high[:, 6:] = 0.5 * (low + high)[:, 6:]
    return noisy, (low, high), (clean_low, clean_high)


def swapped(rng, rows, classes=100, members=12):
    """Members that each swap two classes of one prediction: all other widths are zero or rounding."""
    p = np.repeat(rng.dirichlet(np.ones(classes), rows)[None], members, axis=0)
    for member in range(members):
        for row in range(rows):
            i, j = rng.choice(classes, 2, replace=False)
            p[member, row, [i, j]] = p[member, row, [j, i]]
    return p * (1 + 1e-16 * rng.normal(size=p.shape))


def permuted(rng, rows, classes=60, noise=1e-15):
    """Members that are permutations of five numbers, but for some noise."""
    values = np.resize([1, 1.1, 1.2, 1.3, 3], classes)
    p = np.stack([[rng.permutation(values) for _ in range(rows)] for _ in range(5)])
    p = p / p.sum(axis=-1, keepdims=True) * (1 + noise * rng.normal(size=p.shape))
    return p / p.sum(axis=-1, keepdims=True)


def test_widths_of_rounding_change_nothing():
    members, noisy, clean = shared_part(np.random.default_rng(0), 500)
    value, (bound, _) = lower_entropy(*noisy, return_bounds=True)
    assert (value - bound <= CLOSED).all()
    np.testing.assert_allclose(value, lower_entropy(*clean), rtol=0, atol=1e-11)
    np.testing.assert_allclose(wrap(members).aleatoric, value, rtol=0, atol=SAME)


@pytest.mark.parametrize("make", [swapped, permuted], ids=lambda make: make.__name__)
def test_the_order_of_classes_changes_nothing(make):
    members = make(np.random.default_rng(1), 60)
    order = np.random.default_rng(2).permutation(members.shape[-1])
    prediction, reversed_, permuted_ = wrap(members), wrap(members[..., ::-1]), wrap(members[..., order])
    for other in (prediction, reversed_, permuted_):
        assert (other.aleatoric - other.aleatoric_bound <= CLOSED).all()
        np.testing.assert_allclose(other.aleatoric, prediction.aleatoric, rtol=0, atol=1e-11)
        np.testing.assert_allclose(other.epistemic, prediction.epistemic, rtol=0, atol=1e-11)


@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-13, 1e-10, 1e-7])
def test_nearly_equal_intervals_are_certified(noise):
    members = permuted(np.random.default_rng(3), 40, noise=noise)
    low, high = members.min(axis=0), members.max(axis=0)
    value, p, (bound, _) = lower_entropy(low, high, return_bounds=True, return_distribution=True)
    assert (value - bound <= 1e-9).all()
    assert (p >= low).all()
    assert (p <= high).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=SAME)
    np.testing.assert_allclose(oracles.entropy(p), value, rtol=0, atol=1e-11)


def test_nearly_equal_intervals_are_what_equal_ones_are():
    exact, noisy = (permuted(np.random.default_rng(4), 30, noise=noise) for noise in (0.0, 1e-15))
    np.testing.assert_allclose(wrap(noisy).aleatoric, wrap(exact).aleatoric, rtol=0, atol=1e-11)


def test_two_searches_in_turn_close_flat_rows():
    """With a budget of 20,000 nodes thirteen rows of twenty stay open."""
    members = np.random.default_rng(1).dirichlet(np.ones(300), (50, 20))
    low, high = members.min(axis=0), members.max(axis=0)
    few, (floor, _) = open_entropy(low, high, 20_000)
    value, (bound, _) = open_entropy(low, high, MAX_NODES)
    assert (few - floor > 1e-9).sum() >= 5
    assert (value - bound > 1e-9).sum() <= 1
    assert (value <= few + SAME).all()
    assert (bound >= floor - SAME).all()
    assert (few - value).max() > 1e-5


def open_entropy(low, high, max_nodes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return lower_entropy(low, high, return_bounds=True, max_nodes=max_nodes)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.sampled_from(["flat", "near", "shared", "mixed"]), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_any_budget_leaves_a_valid_bracket_and_a_warning_where_a_row_is_open(kind, members, seed):
    rng = np.random.default_rng(seed)
    p = batch_of(kind, members, 3, int(rng.choice([15, 60, 300])), seed=seed)
    low, high = p.min(axis=0), p.max(axis=0)
    exact, (certified, _) = lower_entropy(low, high, return_bounds=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value, q, (bound, _) = lower_entropy(
            low, high, return_bounds=True, return_distribution=True, max_nodes=int(rng.choice([1, 2, 7, 300, 5000]))
        )
    assert (bound <= exact + SAME).all()
    assert (value >= certified - SAME).all()
    np.testing.assert_allclose(oracles.entropy(q), value, rtol=0, atol=1e-11)
    number = int((value - bound > 1e-9).sum())
    messages = [str(entry.message) for entry in caught if "not certified" in str(entry.message)]
    assert len(messages) == (number > 0)
    assert all(message.startswith(f"{number} of 3 rows") for message in messages)


def test_wrap_warns_of_open_rows_and_says_how_far():
    members = batch_of("flat", 5, 8, 60)
    with pytest.warns(RuntimeWarning, match=r"of 8 rows .* max_nodes=1: .* larger max_nodes") as caught:
        prediction = wrap(members, max_nodes=1)
    assert caught[0].filename == __file__
    gap = prediction.aleatoric - prediction.aleatoric_bound
    assert f"{(gap > 1e-9).sum()} of 8" in str(caught[0].message)
    assert f"up to {gap.max():.3g} bits" in str(caught[0].message)


def test_a_coarse_tolerance_that_was_asked_for_is_no_warning():
    wrap(batch_of("flat", 5, 8, 60), tolerance=0.1)  # a warning is an error here


def test_a_node_that_looks_at_many_classes_counts_for_several():
    members = batch_of("flat", 5, 1, 8 * CLASSES_A_NODE)
    low, high = members.min(axis=0), members.max(axis=0)
    value, bound, p = np.full(1, np.inf), np.full(1, -np.inf), np.empty(low.shape)
    nodes = branch_and_bound_rows(low, high, *phi_pair(low, high), TOLERANCE, 3, np.zeros(1, np.int64), value, bound, p)
    assert nodes > 3
    assert nodes <= 3 + 1 + low.shape[1] // CLASSES_A_NODE


def test_the_first_search_takes_at_most_half():
    assert [first_share(n) for n in (1, 2, 3, 100)] == [1, 1, 2, 50]
    assert first_share(MAX_NODES) * 10 < MAX_NODES


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(1, 30), st.sampled_from(NEAR), st.integers(0, 2**32 - 1))
def test_merged_bounds_contain_the_set_and_are_near_it(classes, near, seed):
    rng = np.random.default_rng(seed)
    values = rng.choice(rng.random(1 + classes // 4), (3, classes))
    values *= 1 + near * rng.uniform(-3, 3, values.shape) * (rng.random(values.shape) < 0.7)
    low, high = merge_near(values, near), -merge_near(-values, near)
    assert (low <= values).all()
    assert (high >= values).all()
    assert (values - low <= classes * near * values * 1.01).all()
    for row, merged in zip(values, low, strict=True):
        ordered = np.sort(row)
        runs = 1 + (np.diff(ordered) > near * ordered[1:]).sum()
        assert len(np.unique(merged)) == runs
