"""The same numbers for every array library, handed back in kind."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.strategies import batch_of

from credalens import (
    ConvexHull,
    MemberSummary,
    intersection_probability,
    lower_entropy,
    upper_entropy,
    wrap,
    wrap_logits,
)
from credalens.arrays import to_numpy

ARRAYS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic")
BATCH = batch_of("peaked", 5, 16, 10)


def close(array, expected, atol):
    np.testing.assert_allclose(np.asarray(array, dtype=np.float64), expected, rtol=0, atol=atol)


class TestTorch:
    torch = pytest.importorskip("torch")

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
    def test_tensors_in_tensors_out(self, name):
        dtype = getattr(self.torch, name)
        members = self.torch.tensor(BATCH).to(dtype)
        exact = members.double().numpy()
        expected = wrap(exact / exact.sum(-1, keepdims=True))
        prediction = wrap(members)
        for field in ARRAYS:
            value = getattr(prediction, field)
            assert value.dtype == (self.torch.float64 if name == "float64" else self.torch.float32)
            assert value.device == members.device
            close(value, getattr(expected, field), 1e-12 if name == "float64" else 2e-6)
        assert prediction.predict().dtype == self.torch.int64
        assert prediction.predict_set().dtype == self.torch.bool
        assert prediction.classical.total.dtype == prediction.total.dtype
        assert prediction.hartley.shape == (16,)

    def test_summaries_stay_tensors(self):
        members = self.torch.tensor(BATCH, dtype=self.torch.float32)
        summary = MemberSummary().update(members[:2]).merge(MemberSummary().update(members[2:]))
        assert summary.lower.dtype == self.torch.float64
        prediction = summary.prediction()
        for field in ARRAYS:
            assert getattr(prediction, field).dtype == self.torch.float32
            close(getattr(prediction, field), getattr(wrap(BATCH), field), 2e-6)

    def test_functions_of_bounds(self):
        low, high = self.torch.tensor(BATCH).amin(0), self.torch.tensor(BATCH).amax(0)
        for function in (lower_entropy, upper_entropy, intersection_probability):
            close(function(low, high), function(low.numpy(), high.numpy()), 0)

    def test_one_input_without_a_batch_has_scalar_results(self):
        prediction = wrap(self.torch.tensor(BATCH[:, 0]))
        assert prediction.total.shape == prediction.classical.total.shape == prediction.hartley.shape == ()
        assert upper_entropy(prediction.lower, prediction.upper).shape == ()

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
    def test_the_hull_of_whatever_wrap_took(self, name):
        members = self.torch.softmax(self.torch.randn(5, 7, 4, generator=self.torch.manual_seed(0)), -1)
        members = members.to(getattr(self.torch, name))
        expected = ConvexHull(members.double() / members.double().sum(-1, keepdim=True))
        hull, wide = wrap(members).hull, self.torch.promote_types(members.dtype, self.torch.float32)
        for value, exact in [
            (hull.upper_entropy(), expected.upper_entropy()),
            (hull.lower_entropy(), expected.lower_entropy()),
            (hull.lower_probability([0, 2]), expected.lower_probability([0, 2])),
        ]:
            assert value.dtype == wide
            close(value, exact, 2e-6)
        logits = wrap_logits(members)
        assert logits.hull.upper_entropy().dtype == logits.hull.probs.dtype == logits.total.dtype == wide

    def test_a_list_of_tensors_comes_back_as_tensors(self):
        members = [self.torch.tensor(p, requires_grad=True) for p in BATCH]
        close(wrap(members).total, wrap(BATCH).total, 0)
        assert isinstance(wrap(members).total, self.torch.Tensor)
        narrow = wrap([p.detach().bfloat16() for p in members])
        assert narrow.total.dtype == self.torch.float32
        with pytest.raises(ValueError, match="rectangular"):
            wrap([members[0], members[0][:3]])

    def test_a_tensor_that_needs_gradients_is_read_without_them(self):
        members = self.torch.tensor(BATCH, requires_grad=True)
        assert not wrap(members).total.requires_grad


class TestJax:
    jax = pytest.importorskip("jax")

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
    def test_arrays_in_arrays_out(self, name):
        members = self.jax.numpy.asarray(BATCH, dtype=name)
        exact = np.asarray(members).astype(np.float64)
        expected = wrap(exact / exact.sum(-1, keepdims=True))
        prediction = wrap(members)
        for field in ARRAYS:
            value = getattr(prediction, field)
            assert isinstance(value, self.jax.Array)
            assert value.dtype == np.float32
            close(value, getattr(expected, field), 2e-6)

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
    def test_the_hull_of_whatever_wrap_took(self, name):
        members = self.jax.numpy.asarray(BATCH, dtype=name)
        for prediction in (wrap(members), wrap_logits(members)):
            value = prediction.hull.upper_entropy()
            assert isinstance(value, self.jax.Array)
            assert value.dtype == np.float32
        close(wrap(members).hull.lower_entropy(), wrap(BATCH).hull.lower_entropy(), 5e-2)

    def test_logits_and_summaries(self):
        logits = self.jax.numpy.asarray(np.log(BATCH), dtype="float32")
        close(wrap_logits(logits).total, wrap(BATCH).total, 2e-5)
        members = self.jax.numpy.asarray(BATCH, dtype="float32")
        summary = MemberSummary().update(members)
        assert isinstance(summary.lower, self.jax.Array)
        close(summary.prediction().total, wrap(BATCH).total, 2e-5)


def test_array_api_arrays_come_back_in_their_namespace():
    strict = pytest.importorskip("array_api_strict")
    members = strict.asarray(BATCH)
    prediction = wrap(members)
    assert type(prediction.total) is type(members)
    close(np.from_dlpack(prediction.total), wrap(BATCH).total, 0)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_the_hull_of_narrow_numpy_arrays(name):
    dtype = np.float16 if name == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    prediction = wrap(BATCH.astype(dtype))
    assert prediction.hull.upper_entropy().dtype == np.float32
    close(prediction.hull.upper_entropy(), wrap(BATCH).hull.upper_entropy(), 5e-2)


def test_cupy_arrays_are_fetched_and_handed_back(monkeypatch):
    # A stand-in with CuPy's own names: no GPU is at hand where the tests run.
    class Array:
        __module__ = "cupy"

        def __init__(self, values):
            self.values, self.device, self.dtype, self.shape = values, "gpu0", values.dtype, values.shape

        def get(self):
            return self.values

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(asarray=Array))
    prediction = wrap(Array(BATCH))
    assert isinstance(prediction.total, Array)
    close(prediction.total.get(), wrap(BATCH).total, 0)


def test_memory_maps_are_read_in_place(tmp_path):
    path = tmp_path / "members.npy"
    np.save(path, BATCH)
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    prediction = wrap(mapped)
    np.testing.assert_array_equal(prediction.total, wrap(BATCH).total)
    assert np.shares_memory(prediction._members.array, mapped)


def test_a_list_is_read_once():
    """Members that come one by one may be large."""
    calls = []

    class Member:
        def __array__(self, dtype=None, copy=None):
            calls.append(self)
            return BATCH[0]

    np.asarray([Member(), Member()])
    once = len(calls)
    assert to_numpy([Member(), Member()])[0].shape == (2, 16, 10)
    assert len(calls) == 2 * once


def test_strides_do_not_matter():
    fortran = np.asfortranarray(BATCH)
    np.testing.assert_array_equal(wrap(fortran).aleatoric, wrap(BATCH).aleatoric)
    np.testing.assert_array_equal(wrap(np.repeat(BATCH, 2, axis=1)[:, ::2]).aleatoric, wrap(BATCH).aleatoric)
