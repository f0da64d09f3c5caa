"""Probabilities that are said to be logits, and maps whose classes are not on the last axis, do not pass silently."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import (
    ConvexHull,
    MemberSummary,
    classical_uncertainty,
    probability_intervals,
    wrap,
    wrap_logits,
)
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


@pytest.mark.parametrize(
    "function",
    [
        wrap,
        wrap_logits,
        lambda p: MemberSummary().update(p),
        ConvexHull,
        classical_uncertainty,
        probability_intervals,
    ],
)
@pytest.mark.parametrize(
    ("shape", "doubtful"), [((6000, 2), True), ((101, 10), True), ((21, 2), True), ((20, 2), False)]
)
def test_rows_of_one_model_that_are_read_as_members(function, shape, doubtful):
    values = RNG.dirichlet(np.ones(shape[1]), shape[0])
    values = np.log(values) if function is wrap_logits else values
    said = words_of(function, values)
    assert len(said) == doubtful
    for words in said:
        assert f"read as {shape[0]} members that predict one input" in words
        assert all(remedy in words for remedy in ("[None]", "[:, None]", "member_axis="))
    assert words_of(function, values[:, None]) == words_of(function, values[None]) == []
    if function is wrap:
        assert words_of(function, values.T, member_axis=1, class_axis=0) == []
        assert len(words_of(function, list(values))) == doubtful


def test_a_summary_of_what_one_member_says_is_meant():
    assert words_of(MemberSummary().update, RNG.dirichlet(np.ones(2), 6000), member_axis=None) == []


@pytest.mark.parametrize("axis", [-4, -3, -2])
def test_probabilities_as_logits_whose_classes_are_on_another_axis(axis):
    sizes = {-4: 6, -3: 4, -2: 8, -1: 9}
    rest = [5, *(size for place, size in sizes.items() if place != axis)]
    probs = np.moveaxis(RNG.dirichlet(np.ones(sizes[axis]), rest), -1, axis)
    for wrong in sorted({-4, -3, -2, -1, 2} - {axis, axis + 5}):
        said = words_of(wrap_logits, probs, class_axis=wrong)
        assert f"sum to one along axis {axis}. If so, say wrap(probs, class_axis={axis})" in said[-1]
    assert words_of(wrap_logits, np.log(probs), class_axis=axis) == []


def test_the_batch_of_a_stack_is_not_taken_for_the_classes():
    stack = RNG.normal(size=(5, 8, 4, 32, 32))
    (words,) = words_of(wrap_logits, stack, class_axis=1)
    assert "class_axis=-3 for such images" in words
    assert "-4, confirms axis 1" in words
    assert words_of(wrap_logits, stack, class_axis=-4) == words_of(wrap_logits, stack, class_axis=-3) == []
    one_image = stack[:, 0]
    assert words_of(wrap_logits, one_image, class_axis=1) == []


@pytest.mark.parametrize("shape", [(5, 4, 150, 32, 32), (5, 4, 21, 16, 16), (5, 4, 4, 4, 4)])
def test_nor_where_there_are_more_classes_than_rows_of_pixels(shape):
    """Sides that are equal say enough, as they do where the classes are taken to be last."""
    stack = np.broadcast_to(RNG.normal(size=(1, *shape[1:3], 1, 1)), shape)
    assert "class_axis=-3 for such images" in words_of(wrap_logits, stack, class_axis=1)[0]
    assert words_of(wrap_logits, stack, class_axis=-4) == words_of(wrap_logits, stack, class_axis=-3) == []


@pytest.mark.parametrize("shape", [(5, 10, 64), (5, 10, 10), (5, 21, 16, 16), (5, 3, 40, 16, 8), (5, 3, 20, 4, 7)])
def test_ordinary_stacks_with_their_classes_behind_the_members_pass(shape):
    assert words_of(wrap_logits, RNG.normal(size=shape), class_axis=1) == []


def test_strict_arrays_are_looked_at():
    strict = pytest.importorskip("array_api_strict")
    probs = RNG.dirichlet(np.ones(4), (3, 20))
    assert len(words_of(wrap_logits, strict.asarray(probs))) == 1
    assert words_of(wrap_logits, strict.asarray(np.log(probs))) == []
    elsewhere = np.moveaxis(RNG.dirichlet(np.ones(4), (3, 7, 9)), -1, -2)
    assert "sum to one along axis -2" in words_of(wrap_logits, strict.asarray(elsewhere))[0]


def test_a_wrapper_counts_the_axes_of_what_one_member_returns():
    torch = pytest.importorskip("torch")
    from credalens.torch import CredalWrapper

    maps = torch.from_numpy(RNG.normal(size=(3, 8, 4, 32, 32)))
    for axis in (1, -3):
        wrapper = CredalWrapper([lambda x, n=n: maps[n] for n in range(3)], class_axis=axis)
        assert words_of(wrapper, maps) == []
    assert len(words_of(CredalWrapper([lambda x, n=n: maps[n] for n in range(3)]), maps)) == 1
