"""Rows settled without branch and bound: the value is the optimum, and few are left open; results as NumPy rounds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import ConvexHull, MemberSummary, lower_entropy, upper_entropy, wrap
from credalens.core.options import MAX_NODES, TOLERANCE
from credalens.kernels import ROUNDING, epistemic_part
from credalens.kernels.decompose import decompose_bounds, decompose_members, write_results
from credalens.kernels.lower.enumeration import flips_workspace
from credalens.kernels.lower.solve import enumerate_records, records_workspace, search_workspace
from tests import oracles
from tests.strategies import KINDS, OPEN_ROWS, batch_of


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


bits = st.sampled_from([0.0, -0.0, 1.0, 1.0 + ROUNDING / 2, 1.0 + 2 * ROUNDING, -1e-17, 3.25]) | st.floats(0, 10)


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(bits, bits, bits), min_size=1, max_size=20),
    st.sampled_from([1.0, 0.3, float(np.log(2))]),
    st.sampled_from([np.float32, np.float64]),
)
def test_what_is_written_is_what_numpy_rounds(rows, scale, dtype):
    entropies = np.ascontiguousarray(np.array(rows).T)
    total, aleatoric, epistemic, bound = results = np.empty((4, len(rows)), dtype)
    write_results(entropies, scale, *results)
    lowest = np.maximum(entropies[1], 0)
    for written, expected in (
        (total, np.maximum(entropies[0], lowest)),
        (aleatoric, lowest),
        (bound, np.clip(entropies[2], 0, lowest)),
    ):
        np.testing.assert_array_equal(written, (expected * scale).astype(dtype))
    np.testing.assert_array_equal(epistemic, (epistemic_part(entropies[0], entropies[1]) * scale).astype(dtype))
    assert not np.signbit(results[results == 0.0]).any()


@pytest.mark.filterwarnings(OPEN_ROWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise", [0.0, 1e-300, 1e-30, 1e-3])
@pytest.mark.parametrize("sure", [1.0, 1.0 + 8e-15])  # the latter is not renormalised
def test_no_uncertainty_is_negative(dtype, noise, sure):
    rng = np.random.default_rng(0)
    p = sure * np.eye(5)[rng.integers(0, 5, (5, 2000))] + noise ** rng.uniform(0.5, 1, (5, 2000, 5))
    p = (p if noise == 0 else p / p.sum(axis=-1, keepdims=True)).astype(dtype)
    for prediction in (wrap(p), wrap(p, max_nodes=1), MemberSummary().update(p).prediction()):
        assert (prediction.aleatoric_bound >= 0).all()
        assert (prediction.aleatoric_bound <= prediction.aleatoric).all()
        assert (prediction.aleatoric <= prediction.total).all()
        for name in ("total", "aleatoric", "epistemic"):
            assert (getattr(prediction.classical, name) >= 0).all(), name
    for value in (*lower_entropy(*prediction.intervals, return_bounds=True)[1], upper_entropy(*prediction.intervals)):
        assert (value >= 0).all()
    hull = ConvexHull(p[:, :50])
    assert (hull.upper_entropy() >= hull.lower_entropy()).all()
    assert (hull.lower_entropy() >= 0).all()


@settings(derandomize=True, deadline=None)
@given(bits, bits)
def test_the_epistemic_part_is_the_difference_or_nothing(total, aleatoric):
    part = epistemic_part(total, aleatoric)
    assert part == (total - aleatoric if total - aleatoric > ROUNDING else 0.0)
    assert not np.signbit(part)
    assert epistemic_part(np.array([total]), np.array([aleatoric])).tolist() == [part]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 10, 11, 100])
def test_members_that_are_certain_have_no_uncertainty_and_no_sign(classes, dtype):
    p = np.zeros((3, 5, classes), dtype)
    p[..., 1] = 1
    for prediction in (wrap(p), wrap(p, base=10), MemberSummary().update(p).prediction()):
        for name in ("total", "aleatoric", "epistemic", "aleatoric_bound"):
            result = getattr(prediction, name)
            np.testing.assert_array_equal(result, np.zeros(5))
            assert not np.signbit(result).any()
