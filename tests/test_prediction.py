"""wrap: what it returns, in which library, shape and precision."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given

from credalens import (
    ConvexHull,
    CredalPrediction,
    MemberSummary,
    credal_decision,
    generalized_hartley,
    wrap,
    wrap_logits,
)
from credalens.checks import intervals
from credalens.core import batches
from credalens.core.scores import SCORES
from tests import oracles
from tests.memory_use import with_peak
from tests.strategies import KINDS, batch_of, ensembles

ARRAYS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")
WEATHER = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])


def test_weather_by_hand():
    prediction = wrap(WEATHER)
    np.testing.assert_allclose(prediction.lower, [0.1, 0.1, 0.2])
    np.testing.assert_allclose(prediction.upper, [0.7, 0.6, 0.7])
    np.testing.assert_allclose(prediction.probability, [0.325, 0.2875, 0.3875])
    np.testing.assert_allclose(prediction.mean, [1 / 3, 0.3, 11 / 30])
    assert math.isclose(prediction.total, math.log2(3))
    assert math.isclose(prediction.aleatoric, float(oracles.entropy(np.array([0.7, 0.1, 0.2]))))
    assert math.isclose(prediction.epistemic, prediction.total - prediction.aleatoric)
    assert prediction.predict() == 2
    assert prediction.n_members == 3


@given(ensembles(max_classes=9))
def test_everything_follows_from_the_bounds(members):
    prediction = wrap(members)
    low, high = members.min(axis=0), members.max(axis=0)
    assert abs(prediction.aleatoric - oracles.lower_entropy(low, high)) <= 1e-9
    assert abs(prediction.total - oracles.upper_entropy(low, high)[0]) <= 1e-12
    assert abs(prediction.epistemic - (prediction.total - prediction.aleatoric)) <= 1e-12
    assert prediction.aleatoric - prediction.aleatoric_bound <= 1e-9
    assert abs(prediction.probability.sum() - 1) <= 1e-12
    assert abs(prediction.hartley - oracles.generalized_hartley(low, high)) <= 1e-12
    assert abs(prediction.classical.total - oracles.entropy(members.mean(axis=0))) <= 1e-12
    assert abs(prediction.classical.aleatoric - oracles.entropy(members).mean()) <= 1e-12


@given(ensembles(max_classes=7))
def test_credal_total_is_at_least_classical_total(members):
    # The mean is one of the distributions in the credal set.
    prediction = wrap(members)
    assert prediction.total >= prediction.classical.total - 1e-12
    assert prediction.aleatoric <= prediction.classical.aleatoric + 1e-12
    assert prediction.epistemic >= prediction.classical.epistemic - 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_batches_equal_rows(kind):
    batch = batch_of(kind, 4, 12, 6)
    together = wrap(batch.reshape(4, 3, 4, 6))
    for i in range(12):
        alone = wrap(batch[:, i])
        for name in ARRAYS:
            value = getattr(together, name)[i // 4, i % 4]
            np.testing.assert_allclose(value, getattr(alone, name), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_follows_the_input_but_never_below_float32(dtype):
    batch = batch_of("peaked", 5, 20, 10).astype(dtype)
    prediction = wrap(batch)
    expected = np.float64 if dtype is np.float64 else np.float32
    assert all(getattr(prediction, name).dtype == expected for name in ARRAYS)
    exact = batch.astype(np.float64) / batch.astype(np.float64).sum(-1, keepdims=True)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(prediction, name), getattr(wrap(exact), name), atol=2e-6)


def test_one_float32_member_is_a_single_distribution():
    # Its sum misses one by rounding; the set must not come out empty.
    batch = batch_of("flat", 1, 200, 1000).astype(np.float32)
    prediction = wrap(batch)
    np.testing.assert_allclose(prediction.epistemic, 0, atol=1e-6)
    np.testing.assert_allclose(prediction.probability.sum(-1), 1, atol=1e-6)


def test_results_feed_back_into_the_functions():
    prediction = wrap(batch_of("peaked", 5, 30, 20).astype(np.float32))
    assert prediction.intervals.is_reachable.all()
    assert prediction.predict_set().any(-1).all()
    assert prediction.predict_set("e_admissibility")[np.arange(30), prediction.predict()].mean() > 0.5
    value, bounds = generalized_hartley(prediction.lower, prediction.upper, return_bounds=True)
    np.testing.assert_array_equal(prediction.hartley, value)
    np.testing.assert_array_equal(prediction.hartley_bounds, bounds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_was_computed_here_is_not_validated_again(dtype, monkeypatch):
    prediction = wrap(batch_of("peaked", 4, 50, 10).astype(dtype))
    lower, upper = prediction.intervals
    hartley, sets = generalized_hartley(lower, upper), credal_decision(lower, upper, "maximality")

    def refuse(*_):
        raise AssertionError("validated again")

    monkeypatch.setattr(intervals, "_check", refuse)
    np.testing.assert_array_equal(prediction.hartley, hartley)
    np.testing.assert_array_equal(prediction.predict_set("maximality"), sets)
    assert prediction.intervals.is_reachable.all()
    assert prediction.intervals.contains(prediction.probability).all()


def test_the_hull_needs_the_members():
    batch = batch_of("flat", 3, 4, 5)
    np.testing.assert_array_equal(wrap(batch).hull.upper_entropy(), ConvexHull(batch).upper_entropy())
    with pytest.raises(ValueError, match="made from a summary"):
        _ = MemberSummary().update(batch).prediction().hull


def test_logits_are_softmaxed():
    logits = np.random.default_rng(0).normal(size=(5, 7, 4)) * 5
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(wrap_logits(logits), name), getattr(wrap(p), name), atol=1e-12)
    shifted = wrap_logits(logits + 1000.0)
    np.testing.assert_allclose(shifted.total, wrap(p).total, atol=1e-10)


def test_logits_that_differ_by_more_than_float64_holds():
    prediction = wrap_logits([[1e308, -1e308], [0.0, 0.0]])
    np.testing.assert_array_equal(prediction.upper, [1, 0.5])
    np.testing.assert_array_equal(prediction.lower, [0.5, 0])


def test_a_ruled_out_class_has_zero_probability():
    prediction = wrap_logits(np.array([[0.0, 0.0, -np.inf], [1.0, 0.0, -np.inf]]))
    assert prediction.upper[2] == 0


@pytest.mark.parametrize("shape", [(3, 0, 4), (2, 5, 0, 3)])
def test_an_empty_batch_gives_empty_results(shape):
    prediction = wrap(np.empty(shape))
    assert prediction.lower.shape == shape[1:]
    assert prediction.total.shape == shape[1:-1]
    assert prediction.classical.total.shape == shape[1:-1]
    assert prediction.hartley.shape == shape[1:-1]
    assert prediction.predict_set().shape == shape[1:]


def test_member_axis_and_base():
    batch = batch_of("flat", 4, 6, 3)
    np.testing.assert_array_equal(wrap(np.moveaxis(batch, 0, 1), member_axis=1).total, wrap(batch).total)
    np.testing.assert_allclose(wrap(batch, base=math.e).total, wrap(batch).total * math.log(2))
    np.testing.assert_allclose(wrap(batch, base=math.e).classical.total, wrap(batch).classical.total * math.log(2))


LAYOUTS = {
    "member_axis=1": (lambda p: np.ascontiguousarray(np.moveaxis(p, 0, 1)), 1),
    "member_axis=-2": (lambda p: np.ascontiguousarray(np.moveaxis(p, 0, -2)), -2),
    "sliced": (lambda p: np.repeat(p, 2, axis=1)[:, ::2], 0),
    "backwards": (lambda p: np.ascontiguousarray(p[:, ::-1, ::-1])[:, ::-1, ::-1], 0),
    "Fortran order": (np.asfortranarray, 0),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("batch", [(4000,), (50, 80)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_order_in_memory_changes_no_bit(layout, batch, dtype):
    members = batch_of("peaked", 5, 4000, 10).astype(dtype).reshape(5, *batch, 10)
    arrange, axis = LAYOUTS[layout]
    prediction, expected = wrap(arrange(members), member_axis=axis), wrap(members)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(prediction, name), getattr(expected, name))
    for name in ("total", "aleatoric", "epistemic"):
        np.testing.assert_array_equal(getattr(prediction.classical, name), getattr(expected.classical, name))
    np.testing.assert_array_equal(prediction.hull.lower_entropy(), expected.hull.lower_entropy())
    logits = wrap_logits(arrange(-members), member_axis=axis)
    np.testing.assert_array_equal(logits.total, wrap_logits(-members).total)


def test_members_in_another_order_are_copied_a_chunk_at_a_time():
    """Counted: 6 MiB for scratch memory and chunks; the members themselves are 38."""
    members = np.moveaxis(batch_of("peaked", 5, 100_000, 10), 0, 1).copy()
    wrap(members[:100], member_axis=1)  # compiles
    prediction, peak = with_peak(lambda: wrap(members, member_axis=1, threads=2))
    assert peak - sum(getattr(prediction, name).nbytes for name in ARRAYS) < members.nbytes / 4


def test_it_describes_itself():
    assert repr(wrap(WEATHER)) == "CredalPrediction(members=3, batch=(), classes=3, base=2)"
    assert repr(wrap(WEATHER, trim=0.4)) == "CredalPrediction(members=3, batch=(), classes=3, base=2, trim=0.4)"


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_do_not_change_results(threads):
    batch = batch_of("peaked", 3, 4000, 9)
    for name in ARRAYS:
        np.testing.assert_array_equal(
            getattr(wrap(batch, threads=threads), name), getattr(wrap(batch, threads=1), name)
        )


def test_integer_one_hots_are_votes():
    prediction = wrap(np.eye(3, dtype=int)[[[0, 1], [0, 2], [0, 1]]])
    assert prediction.total.dtype == np.float64
    np.testing.assert_allclose(prediction.epistemic, [0, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agreement_is_exactly_zero(dtype):
    # Ties matter: a score that is constant up to rounding would rank inputs by noise.
    prediction = wrap(np.repeat(batch_of("peaked", 1, 500, 10), 3, axis=0).astype(dtype))
    np.testing.assert_array_equal(prediction.epistemic, 0)
    np.testing.assert_array_equal(prediction.classical.epistemic, 0)
    np.testing.assert_array_equal(wrap(batch_of("flat", 1, 100, 7)).epistemic, 0)


@pytest.mark.parametrize("made", [wrap, lambda p, threads: MemberSummary().update(p).prediction(threads=threads)])
@pytest.mark.parametrize("lazy", ["classical", "hartley"])
def test_what_is_computed_later_has_as_many_threads(made, lazy, monkeypatch):
    started = []

    class Pool(batches.ThreadPoolExecutor):
        def __init__(self, helpers):
            started.append(helpers)
            super().__init__(helpers)

    monkeypatch.setattr(batches, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(batches, "usable_cores", lambda: 2)
    members = np.random.default_rng(0).dirichlet(np.ones(10), (3, 20_000))
    getattr(made(members, threads=1), lazy)
    assert started == []
    getattr(made(members, threads=None), lazy)
    assert started


@given(ensembles(kinds=("one_hot", "rounded", "flat")))
def test_the_mean_decides_between_classes_of_equal_intersection_probability(members):
    prediction = wrap(members)
    tied = prediction.probability >= prediction.probability.max() - 1e-15
    assert prediction.predict() == np.where(tied, prediction.mean, -1).argmax()


def test_one_hot_members_predict_the_class_with_most_votes():
    assert wrap(np.eye(3)[[2, 2, 0, 1, 2]]).predict() == 2


@pytest.mark.parametrize("key", [slice(2, 5), [4, 0], 3, np.arange(6) % 2 == 0])
@pytest.mark.parametrize("make", [wrap, lambda p: MemberSummary().update(p).prediction()])
def test_slicing_chooses_inputs(make, key):
    members = batch_of("peaked", 3, 12, 4).reshape(3, 6, 2, 4)
    part = make(members)[key]
    expected = make(members[:, key])
    for name in ("lower", "probability", "total", "aleatoric_bound", "hartley"):
        assert np.array_equal(getattr(part, name), getattr(expected, name))
    assert np.allclose(part.classical.epistemic, expected.classical.epistemic, rtol=0, atol=1e-12)
    if make is wrap:
        assert np.array_equal(part.score("mean_pairwise_kl"), expected.score("mean_pairwise_kl"))


KEYS = [
    (1, 2), (slice(1, 3), 0), (..., 1), (0, ...), ([0, 2], slice(None), [1, 0]), ([2, 0], [1, 3]), (None, 1, slice(2)), (1,),
    np.random.default_rng(0).random((3, 4, 2)) < 0.5, (slice(None), np.random.default_rng(1).random((4, 2)) < 0.5),
    [2, 0], (1, [True, False, True, False]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_index_of_several_axes_chooses_the_same_inputs_everywhere(key, library):
    members = np.random.default_rng(0).dirichlet(np.ones(3), (5, 3, 4, 2))
    chosen = np.arange(24).reshape(3, 4, 2)[key]
    flat = wrap(members.reshape(5, 24, 3))
    prediction = wrap(members if library == "numpy" else pytest.importorskip("torch").from_numpy(members))[key]
    assert tuple(prediction.total.shape) == chosen.shape
    for name in ("total", "mean_total", "mean_pairwise_kl", "hartley"):
        np.testing.assert_array_equal(np.asarray(prediction.score(name)), flat.score(name)[chosen])
    np.testing.assert_array_equal(np.asarray(prediction.hull.lower_entropy()), flat.hull.lower_entropy()[chosen])


@pytest.mark.parametrize("key", [(1, slice(1, None), [1, 0]), ([2, 0, 1], slice(2), 1), (0, slice(None), [0])], ids=str)
def test_mixed_indices_choose_as_the_library_of_the_results_does(key):
    """NumPy and torch put the axes of such an index in another order; all parts of a prediction follow the same."""
    torch = pytest.importorskip("torch")
    members = np.random.default_rng(0).dirichlet(np.ones(3), (5, 3, 4, 2))
    flat = wrap(members.reshape(5, 24, 3))
    for probs, numbers in ((members, np.arange(24)), (torch.from_numpy(members), torch.arange(24))):
        prediction, chosen = wrap(probs)[key], np.asarray(numbers.reshape(3, 4, 2)[key])
        for name in ("total", "mean_total", "mean_pairwise_kl"):
            np.testing.assert_array_equal(np.asarray(prediction.score(name)), flat.score(name)[chosen])
        np.testing.assert_array_equal(np.asarray(prediction.hull.lower_entropy()), flat.hull.lower_entropy()[chosen])


@pytest.mark.parametrize("key", [(0, 1, 2), (0, ..., 1, 2), (slice(None), slice(None), 0)], ids=str)
def test_an_index_that_reaches_the_classes_is_refused(key):
    prediction = wrap(np.random.default_rng(0).dirichlet(np.ones(3), (5, 3, 4)))
    with pytest.raises(IndexError, match="the batch has 2 axes and the index is for 3"):
        prediction[key]


def test_length_is_the_first_batch_axis():
    assert len(wrap(batch_of("flat", 3, 7, 4))) == 7
    with pytest.raises(TypeError, match="single input"):
        len(wrap([[0.2, 0.8], [0.5, 0.5]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_prediction_comes_back(tmp_path, dtype):
    prediction = wrap(batch_of("peaked", 12, 9, 4).astype(dtype), base=math.e, trim=0.1)
    prediction.save(tmp_path / "prediction.npz")
    loaded = CredalPrediction.load(tmp_path / "prediction.npz")
    for name in ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound"):
        assert np.array_equal(getattr(loaded, name), getattr(prediction, name))
        assert getattr(loaded, name).dtype == dtype
    assert (loaded.base, loaded.n_members, loaded.trim) == (math.e, 12, 0.1)
    for name in SCORES:
        if not SCORES[name].needs_members:
            assert np.array_equal(loaded.score(name), prediction.score(name))
    with pytest.raises(ValueError, match="from a file"):
        loaded.hull  # noqa: B018


def test_a_prediction_for_one_input_is_saved_as_well(tmp_path):
    prediction = wrap([[0.2, 0.8], [0.5, 0.5]])
    prediction.save(tmp_path / "one.npz")
    assert CredalPrediction.load(tmp_path / "one.npz").total == prediction.total


def test_a_damaged_or_foreign_file_is_no_prediction(tmp_path):
    path = tmp_path / "prediction.npz"
    wrap(batch_of("peaked", 3, 9, 4)).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a saved prediction"):
        CredalPrediction.load(path)
    for foreign in (np.ones(3), np.ones(())):
        np.savez(path, probs=foreign)
        with pytest.raises(ValueError, match="is not a saved prediction"):
            CredalPrediction.load(path)
    with pytest.raises(ValueError, match=r"\.npz"):
        wrap(batch_of("peaked", 3, 9, 4)).save(tmp_path / "prediction.json")


def test_an_archive_that_python_cannot_open_is_no_prediction(tmp_path):
    path = tmp_path / "prediction.npz"
    wrap(batch_of("peaked", 3, 9, 4)).save(path)
    content = path.read_bytes()
    for field, what in (
        (6, 255),
        (8, 1),
        (10, 99),
        (45, 255),
    ):  # version, encryption, compression, an offset beyond the end
        changed = bytearray(content)
        for mark in re.finditer(rb"PK\x01\x02", content):
            changed[mark.start() + field] = what
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"prediction\.npz .*credalens-prediction-1"):
            CredalPrediction.load(path)


def test_a_data_frame_has_a_row_for_each_input():
    pytest.importorskip("pandas")
    prediction = wrap(batch_of("peaked", 3, 6, 4))
    frame = prediction.to_pandas(["a", "b", "c", "d"])
    assert list(frame.columns) == ["prediction", "probability", "lower", "upper", "total", "aleatoric", "epistemic"]
    assert list(frame["prediction"]) == ["abcd"[k] for k in prediction.predict()]
    assert np.array_equal(frame["upper"], prediction.upper[np.arange(6), prediction.predict()])
    assert len(wrap(batch_of("peaked", 3, 6, 4).reshape(3, 2, 3, 4)).to_pandas()) == 6
    assert len(wrap(batch_of("peaked", 3, 6, 4)[:, 0]).to_pandas()) == 1


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(("member_axis", "class_axis"), [(0, 1), (0, 2), (1, 0), (3, -2), (-1, 0)])
def test_classes_may_lie_on_any_axis(library, member_axis, class_axis):
    members = batch_of("peaked", 3, 10, 4).reshape(3, 2, 5, 4)
    moved = np.moveaxis(members, (0, -1), (member_axis, class_axis))
    if library == "torch":
        moved = pytest.importorskip("torch").from_numpy(moved.copy())
    for function, values in ((wrap, moved), (wrap_logits, moved.log() if library == "torch" else np.log(moved))):
        prediction = function(values, member_axis=member_axis, class_axis=class_axis)
        assert np.allclose(np.asarray(prediction.lower), wrap(members).lower, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("axes", "words"), [((0, 9), "out of range"), ((1, 1), "the same axis"), ((0, 1.5), "integer")]
)
def test_wrong_axes_are_refused_by_name(axes, words):
    members = batch_of("peaked", 3, 10, 4)
    with pytest.raises((ValueError, TypeError), match=words):
        wrap(members, member_axis=axes[0], class_axis=axes[1])


@pytest.mark.parametrize("classes", [1000, 20_000])
def test_the_class_of_flat_float32_rows_is_the_top_of_their_intersection_probability(classes):
    members = np.random.default_rng(0).dirichlet(np.full(classes, 1000.0), (5, 100)).astype(np.float32)
    prediction = wrap(members)
    of_class = np.take_along_axis(prediction.probability, prediction.predict()[:, None], axis=-1)[:, 0]
    assert (of_class >= prediction.probability.max(axis=-1) * (1 - 1e-6)).all()


@pytest.mark.parametrize("parts", [3, 10])
def test_ties_of_classes_are_broken_alike_in_every_precision_and_by_a_summary(parts):
    exact = np.random.default_rng(parts).multinomial(parts, np.full(4, 0.25), (5, 2000)) / parts
    expected = wrap(exact).predict()
    order = np.random.default_rng(0).permutation(5)
    for members in (exact.astype(np.float32), exact[order]):
        np.testing.assert_array_equal(wrap(members).predict(), expected)
        np.testing.assert_array_equal(MemberSummary().update(members).prediction().predict(), expected)
