"""The same numbers for every array library, handed back in kind."""

from __future__ import annotations

import sys
from functools import reduce
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import (
    ConvexHull,
    MemberSummary,
    ProbabilityIntervals,
    intersection_probability,
    lower_entropy,
    upper_entropy,
    wrap,
    wrap_logits,
)
from credalens.arrays import ArrayKind, is_of_one_dtype, rounding, rounding_of_all, to_numpy
from tests.strategies import batch_of

ARRAYS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic")
BATCH = batch_of("peaked", 5, 16, 10)
READERS = {
    "wrap": wrap,
    "wrap_logits": wrap_logits,
    "update": lambda x: MemberSummary().update(x),
    "ConvexHull": ConvexHull,
    "intervals": lambda x: ProbabilityIntervals(x, x),
    "contains": lambda x: ProbabilityIntervals(np.zeros(3), np.ones(3)).contains(x),
    "lower_entropy": lambda x: lower_entropy(x, x),
}


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
        logits = wrap_logits(-members)
        assert logits.hull.upper_entropy().dtype == logits.hull.probs.dtype == logits.total.dtype == wide

    def test_a_list_of_tensors_comes_back_as_tensors(self):
        members = [self.torch.tensor(p, requires_grad=True) for p in BATCH]
        close(wrap(members).total, wrap(BATCH).total, 0)
        assert isinstance(wrap(members).total, self.torch.Tensor)
        narrow = wrap([p.detach().bfloat16() for p in members])
        assert narrow.total.dtype == self.torch.float32
        with pytest.raises(ValueError, match="rectangular"):
            wrap([members[0], members[0][:3]])

    def test_lists_of_tensors_may_be_nested_and_mix_subclasses(self):
        class Named(self.torch.Tensor):
            pass

        tensors = self.torch.tensor(BATCH)
        for members in (
            [list(member) for member in tensors],
            [self.torch.nn.Parameter(tensors[0]), *tensors[1:]],
            tensors.as_subclass(Named),
            list(tensors.as_subclass(Named)),
            self.torch._neg_view(-tensors),
        ):
            for total in (wrap(members).total, MemberSummary().update(members).prediction().total):
                assert isinstance(total, self.torch.Tensor)
                close(total, wrap(BATCH).total, 1e-12)
        narrow = wrap(tensors.bfloat16().as_subclass(Named))
        close(narrow.total, wrap(tensors.bfloat16()).total, 0)
        logits = wrap_logits(self.torch._neg_view(-tensors.log()))
        close(logits.total, wrap(BATCH).total, 1e-12)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda x: x.to_sparse(), r"sparse_coo.*to_dense"),
            (lambda x: x.to("meta"), r"meta device, which has no values; (?!.*to_dense)"),
            (lambda x: x.to(TestTorch.torch.float8_e4m3fn), r"(?i)float8.*float32"),
        ],
        ids=["sparse", "meta", "float8"],
    )
    @pytest.mark.parametrize("function", READERS.values(), ids=READERS)
    def test_tensors_without_values_that_can_be_read(self, function, change, message):
        with pytest.raises(TypeError, match=message):
            function(change(self.torch.eye(3)))

    @pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
    @pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
    def test_members_of_two_precisions_in_a_list(self, library, narrow):
        def member(p, dtype):
            if library == "torch":
                return self.torch.tensor(p).to(getattr(self.torch, dtype))
            if library == "jax":
                return pytest.importorskip("jax").numpy.asarray(p, dtype=dtype)
            return p.astype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)

        members = [member(BATCH[0], narrow), member(BATCH[1], "float32")]
        half = np.asarray(members[0].float() if library == "torch" else members[0], dtype=np.float64)
        assert (abs(half.sum(-1) - 1) > 1e-5).any()
        expected = wrap(np.stack([half / half.sum(-1, keepdims=True), BATCH[1]]))
        for found in (wrap(members), wrap(members[::-1]), MemberSummary().update(members).prediction()):
            close(found.total, expected.total, 2e-6)
            assert str(found.total.dtype).endswith("float32")
        close(wrap(members).hull.lower_entropy(), expected.hull.lower_entropy(), 2e-6)
        bad = [members[0] * 2, members[1]]
        for read in (wrap, MemberSummary().update):
            with pytest.raises(ValueError, match=r"rows of probs are not probability distributions; .* \(0, 0"):
                read(bad)

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
        for prediction in (wrap(members), wrap_logits(-members)):
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

    @pytest.mark.parametrize("transform", ["jit", "grad", "vmap"])
    @pytest.mark.parametrize("function", READERS.values(), ids=READERS)
    def test_traced_arrays_are_refused_with_the_reason(self, function, transform):
        members = self.jax.numpy.asarray(np.eye(3), dtype="float32")
        with pytest.raises(TypeError, match=r"JAX is tracing it.*outside of the transformed function"):
            getattr(self.jax, transform)(lambda x: function(x[None] if transform == "vmap" else x))(members)


class TestArrayApi:
    strict = pytest.importorskip("array_api_strict")

    @pytest.mark.parametrize("key", [0, slice(1, 3), (0,), (slice(2), None), (Ellipsis, 1), [True, False, True, False]])
    @pytest.mark.parametrize("batch", [(4,), (4, 3)])
    def test_some_inputs_are_chosen_without_an_ellipsis(self, batch, key):
        key = self.strict.asarray(key) if isinstance(key, list) else key
        members = np.random.default_rng(0).dirichlet(np.ones(3), (5, *batch))
        chosen, expected = (
            wrap(self.strict.asarray(members))[key],
            wrap(members)[np.asarray(key) if isinstance(key, type(self.strict.asarray(0))) else key],
        )
        for field in ARRAYS:
            close(np.from_dlpack(getattr(chosen, field)), getattr(expected, field), 0)
        close(np.from_dlpack(chosen.classical.total), expected.classical.total, 0)
        close(np.from_dlpack(chosen.hull.lower_entropy()), expected.hull.lower_entropy(), 0)

    @pytest.mark.parametrize("name", ["float32", "float64"])
    def test_arrays_come_back_in_their_namespace(self, name):
        members = self.strict.asarray(BATCH.astype(name))
        exact = wrap(BATCH.astype(name))
        predictions = [
            wrap(members),
            wrap([members[n, ...] for n in range(5)]),
            MemberSummary().update(members).prediction(),
            MemberSummary().update(members[:2, ...]).merge(MemberSummary().update(members[2:, ...])).prediction(),
            wrap(self.strict.moveaxis(members, 0, 1), member_axis=1),
        ]
        for prediction in predictions:
            for field in ARRAYS:
                value = getattr(prediction, field)
                assert type(value) is type(members)
                assert value.dtype == members.dtype
                close(np.from_dlpack(value), getattr(exact, field), 1e-12 if name == "float64" else 1e-6)
            np.testing.assert_array_equal(np.from_dlpack(prediction.predict()), exact.predict())
            np.testing.assert_array_equal(np.from_dlpack(prediction.predict_set()), exact.predict_set())
            costs = np.arange(30.0).reshape(3, 10) % 7
            under_costs = np.from_dlpack(prediction.predict_set("e_admissibility", self.strict.asarray(costs)))
            np.testing.assert_array_equal(under_costs, exact.predict_set("e_admissibility", costs))
            close(np.from_dlpack(prediction.classical.total), exact.classical.total, 1e-6)

    def test_intervals_and_hulls(self):
        members = self.strict.asarray(BATCH)
        intervals, hull = wrap(members).intervals, wrap(members).hull
        results = (
            intervals.contains(members),
            intervals.contains(members[0, ...]),
            intervals.is_reachable,
            intervals.tighten().lower,
            hull.upper_entropy(),
            hull.lower_probability([0, 1]),
        )
        assert all(type(result) is type(members) for result in results)
        assert np.from_dlpack(results[0]).all()
        assert type(wrap(members[:, 0, ...]).intervals.contains(members[0, 0, ...])) is type(members)


class Closed:
    """Says that it is an array of a library, and does not let its values out: as arrays of graphs that are run later."""

    shape, dtype, device = (3, 3), "float32", "cpu"

    def __array_namespace__(self):
        return sys.modules[__name__]


class Refusing(Closed):
    """Has the protocol, and cannot serve it."""

    def __dlpack__(self, **options):
        raise BufferError("the values are on a device that cannot be shared")

    def __dlpack_device__(self):
        return (1, 0)

    def __getitem__(self, index):
        return self


@pytest.mark.parametrize("function", READERS.values(), ids=READERS)
def test_arrays_of_a_library_without_the_protocol_for_their_values(function):
    with pytest.raises(TypeError, match=r"Closed.*__dlpack__.*Give a dense array"):
        function(Closed())


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"update"}))  # which computes in the library of its members
def test_arrays_that_cannot_share_their_values(name):
    with pytest.raises(TypeError, match=r"Refusing.*cannot be shared.*Give a dense array"):
        READERS[name](Refusing())


class Frame:
    """Has a shape and values, as data frames do, and none of an array's operations."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize("library", ["pandas", "polars", "other"])
def test_data_frames_are_read_as_numpy_arrays(library):
    frame = Frame if library == "other" else pytest.importorskip(library).DataFrame
    one_input = MemberSummary().update(frame(BATCH[:, 0]))
    close(one_input.prediction().total, wrap(BATCH[:, 0]).total, 1e-12)
    summary = MemberSummary()
    for member in BATCH:
        summary.update(frame(member), member_axis=None)
    close(summary.prediction().total, wrap(BATCH).total, 1e-12)
    intervals = wrap(BATCH).intervals
    assert intervals.contains(frame(BATCH[0])).all()
    same = ProbabilityIntervals(frame(intervals.lower), frame(intervals.upper))
    assert isinstance(same.lower, np.ndarray)
    close(wrap([frame(member) for member in BATCH]).total, wrap(BATCH).total, 0)


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


ROUNDED = [
    rounding(dtype, logits=logits)
    for dtype in ("float16", "bfloat16", "float32", "float64")
    for logits in (False, True)
]


@given(st.lists(st.sampled_from(ROUNDED), min_size=1, max_size=6), st.integers(1, 5))
def test_members_of_several_dtypes_are_rounded_by_the_same_however_they_are_grouped(roundings, first):
    whole = rounding_of_all(*roundings)
    parts = [part for part in (roundings[:first], roundings[first:]) if part]
    assert whole == rounding_of_all(*(rounding_of_all(*part) for part in reversed(parts)))
    assert max(roundings) <= whole <= 1.1 * max(roundings)
    assert is_of_one_dtype(whole) == (len(set(roundings)) == 1 or max(roundings) < rounding("float16"))
    kinds = [ArrayKind("numpy", "cpu", "float64").rounded_by(one) for one in roundings]
    assert reduce(ArrayKind.wider, kinds).rounding == whole
