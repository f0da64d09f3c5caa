"""Probabilities that are said to be logits, and maps whose classes are not on the last axis, do not pass silently."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import wrap, wrap_logits
from tests.strategies import ensembles

RNG = np.random.default_rng(0)


def words_of(function, *args, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args, **options)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@given(ensembles())
def test_probabilities_given_as_logits(probs):
    (words,) = words_of(wrap_logits, probs)
    assert words.startswith("these logits are probabilities")
    assert 'outputs="probabilities"' in words


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (5, 1000), (3, 7, 11)])
def test_in_every_precision_and_shape(dtype, shape):
    probs = RNG.dirichlet(np.ones(10), shape).astype(dtype)
    assert len(words_of(wrap_logits, probs)) == 1
    assert words_of(wrap_logits, np.log(probs.astype(np.float64) + 1e-9)) == []


def test_lists_tensors_and_other_axes():
    torch = pytest.importorskip("torch")
    probs = torch.from_numpy(RNG.dirichlet(np.ones(4), (3, 20)))
    for given_as in (probs, probs.bfloat16(), list(probs), probs.tolist()):
        assert len(words_of(wrap_logits, given_as)) == 1
    assert len(words_of(wrap_logits, probs.movedim(0, 1), member_axis=1)) == 1
    assert len(words_of(wrap_logits, probs.movedim(-1, 1), class_axis=1)) == 1


@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 3), (4, 100, 7)]))
def test_logits_pass(seed, shape):
    logits = np.random.default_rng(seed).normal(size=shape)
    assert words_of(wrap_logits, logits) == []
    assert words_of(wrap_logits, np.abs(logits)) == []


def test_one_row_that_sums_to_one_is_no_reason():
    assert words_of(wrap_logits, [[1.0, 0.0], [3.0, 2.0]]) == []


@pytest.mark.parametrize("width", [8, 7, 12])
def test_maps_whose_last_axis_may_not_be_the_classes(width):
    logits = RNG.normal(size=(2, 5, 3, 8, width))
    (words,) = words_of(wrap_logits, logits)
    assert "the last axis is taken for the classes" in words
    assert "class_axis=-3" in words
    assert words_of(wrap_logits, logits, class_axis=-3) == words_of(wrap_logits, logits, class_axis=4) == []
    assert words_of(wrap_logits, logits[..., :3]) == words_of(wrap_logits, logits[0, 0]) == []


@pytest.mark.parametrize("shape", [(2, 5, 3, 8, 9), (2, 3, 8, 8)])
def test_maps_of_probabilities_are_refused_and_their_axis_is_named(shape):
    axis = -3
    probs = np.moveaxis(RNG.dirichlet(np.ones(3), np.delete(shape, axis)), -1, axis)
    with pytest.raises(ValueError, match=r"They do sum to 1 along axis -3: .* say class_axis=-3"):
        wrap(probs)
    assert wrap(probs, class_axis=axis).lower.shape == (*np.delete(shape, axis)[1:], 3)


@given(st.integers(0, 2**32 - 1), st.integers(2, 200), st.sampled_from([np.float32, np.float64]))
def test_half_precision_that_was_cast_is_recognised(seed, classes, dtype):
    probs = np.random.default_rng(seed).dirichlet(np.ones(classes), (2, 50)).astype(np.float16)
    assert wrap(probs).n_members == 2
    try:
        wrap(probs.astype(dtype))
    except ValueError as error:
        assert "which half precision or rounded digits explain: keep them in float16" in str(error)  # noqa: PT017
    cast = probs.astype(dtype)
    assert wrap(cast / cast.sum(-1, keepdims=True)).n_members == 2


def test_a_row_that_is_far_off_is_no_rounding():
    probs = RNG.dirichlet(np.ones(5), (2, 50)).astype(np.float16).astype(np.float64)
    probs[1, 3] *= 1.5
    with pytest.raises(ValueError, match="divide by their sum") as caught:
        wrap(probs)
    assert "half precision" not in str(caught.value)
