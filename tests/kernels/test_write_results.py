"""Results in the caller's unit and precision: compiled as NumPy has it, to the last digit, and none of them minus zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import ConvexHull, MemberSummary, lower_entropy, upper_entropy, wrap
from credalens.kernels.epistemic import ROUNDING, epistemic_part
from credalens.kernels.write_results import write_results
from tests.strategies import OPEN_ROWS

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
