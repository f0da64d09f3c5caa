"""What wrap() computes, against the oracles and against the functions that take bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import intersection_probability, lower_entropy, probability_intervals, upper_entropy, wrap
from credalens.core.decomposition import Decomposition
from credalens.kernels.decompose import decompose_members
from tests import oracles
from tests.strategies import KINDS, OPEN_ROWS, batch_of, ensembles

SLACK = 1e-10  # bits; the oracle lets vertices leave their bounds by 1e-13


@given(ensembles(max_classes=9))
def test_entropies_are_those_of_the_vertices_and_of_water_filling(members):
    prediction = wrap(members)
    low, high = members.min(axis=0), members.max(axis=0)
    assert abs(prediction.aleatoric - oracles.lower_entropy(low, high)) <= 1e-9
    assert abs(prediction.total - oracles.upper_entropy(low, high)[0]) <= 1e-12
    assert prediction.aleatoric - prediction.aleatoric_bound <= 1e-9
    assert prediction.aleatoric_bound <= prediction.aleatoric


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 7, 8, 10, 11, 20])
def test_wrap_equals_the_functions_for_bounds(kind, classes):
    members = batch_of(kind, 4, 69, classes, seed=classes)
    prediction = wrap(members)
    low, high = members.min(axis=0), members.max(axis=0)
    np.testing.assert_allclose(prediction.lower, low, rtol=0, atol=1e-15)
    np.testing.assert_allclose(prediction.upper, high, rtol=0, atol=1e-15)
    np.testing.assert_allclose(prediction.mean, members.mean(axis=0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(prediction.probability, intersection_probability(low, high), rtol=0, atol=1e-13)
    np.testing.assert_allclose(prediction.total, upper_entropy(low, high), rtol=0, atol=1e-12)
    np.testing.assert_allclose(prediction.aleatoric, lower_entropy(low, high), rtol=0, atol=2e-12)


@pytest.mark.filterwarnings(OPEN_ROWS)
@given(st.integers(0, 2**32 - 1))
def test_bounds_of_rows_that_need_no_search_are_valid(seed):
    """With one node the search adds nothing: what remains is the certificate of the root."""
    rng = np.random.default_rng(seed)
    members = batch_of(str(rng.choice(KINDS)), 3, 20, int(rng.integers(2, 9)), seed=seed)
    prediction = wrap(members, max_nodes=1)
    low, high = members.min(axis=0), members.max(axis=0)
    exact = np.array([oracles.lower_entropy(a, b) for a, b in zip(low, high, strict=True)])
    assert (prediction.aleatoric_bound <= exact + SLACK).all()
    assert (prediction.aleatoric >= exact - SLACK).all()


@pytest.mark.parametrize("rows", [1, 2, 64, 65, 131])
def test_a_row_does_not_depend_on_its_neighbours(rows):
    members = batch_of("mixed", 3, rows, 6, seed=rows)
    together = wrap(members)
    for row in (0, rows // 2, rows - 1):
        alone = wrap(members[:, row])
        for name in ("lower", "upper", "probability", "mean", "total", "aleatoric", "aleatoric_bound"):
            np.testing.assert_array_equal(getattr(together, name)[row], getattr(alone, name))


@pytest.mark.parametrize("classes", [10, 40])
def test_float32_is_computed_in_float64(classes):
    members = batch_of("peaked", 5, 100, classes).astype(np.float32)
    narrow, wide = wrap(members), wrap(members.astype(np.float64))
    assert narrow.total.dtype == np.float32
    for name in ("lower", "upper", "probability", "mean", "total", "aleatoric"):
        np.testing.assert_array_equal(getattr(narrow, name), getattr(wide, name).astype(np.float32))


@pytest.mark.parametrize("place", [0, 1, 63, 64, 66])
@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 0.5])
def test_one_bad_row_among_good_ones_is_found(place, value):
    members = batch_of("flat", 3, 67, 5)
    members[1, place, 2] = value
    with pytest.raises(ValueError, match=rf"\b{place}\b"):
        wrap(members)


def test_labels_do_not_matter_to_wrap():
    members = batch_of("mixed", 4, 50, 12, seed=1)
    order = np.random.default_rng(0).permutation(12)
    one, two = wrap(members), wrap(members[..., order])
    np.testing.assert_allclose(one.aleatoric, two.aleatoric, rtol=0, atol=2e-12)
    np.testing.assert_allclose(one.total, two.total, rtol=0, atol=1e-12)


def test_bounds_of_wrap_are_the_probability_intervals():
    members = batch_of("sparse", 4, 70, 7)
    prediction = wrap(members)
    lower, upper = probability_intervals(members)
    np.testing.assert_array_equal(prediction.lower, lower)
    np.testing.assert_array_equal(prediction.upper, upper)


@pytest.mark.parametrize("classes", [10, 3, 20])
def test_a_small_call_during_another_takes_no_memory_from_it(classes, monkeypatch):
    """Small calls keep scratch memory for those to come; these may have other sizes, or begin before the first has ended."""
    finish = Decomposition._finish

    def interrupted(self, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(Decomposition, "_finish", finish)
            wrap(members[:, ::-1])
        return finish(self, *arguments)

    for rows in (1, 50, 7):
        members = batch_of("flat", 4, rows, classes, seed=classes)
        wanted = wrap(members)
        with monkeypatch.context() as patch:
            patch.setattr(Decomposition, "_finish", interrupted)
            np.testing.assert_array_equal(wrap(members).aleatoric, wanted.aleatoric)


def test_read_only_members_have_no_kernel_of_their_own():
    members = batch_of("mixed", 3, 60, 4)
    wanted, compiled = wrap(members.copy()), list(decompose_members.signatures)
    members.setflags(write=False)
    prediction = wrap(members)
    np.testing.assert_array_equal(prediction.aleatoric_bound, wanted.aleatoric_bound)
    assert decompose_members.signatures == compiled
