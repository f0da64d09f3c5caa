"""Digests of inputs: equal for equal values, different for different ones, and refused where a value cannot be read."""

import copy
import json
from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn

from credalens.torch import CredalWrapper
from credalens.torch.result_folder import digest
from tests.torch.agreement import assert_same

Point = namedtuple("Point", "x y")
X = torch.arange(12.0).reshape(4, 3)


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Batch:
    images: object
    ids: object = ()


@dataclass(slots=True)
class Slotted:
    images: object


class Labelled(Slotted):
    """A dataclass with an attribute that is no field."""

    def __init__(self, images, label):
        super().__init__(images)
        self.label = label


# Equal values, and only they, have equal digests

numbers = st.sampled_from([np.uint8, np.int64, np.float32, ">f4"]).flatmap(
    lambda dtype: st.lists(st.integers(0, 3), max_size=4).map(lambda values: np.array(values, dtype))
)
shaped = numbers.flatmap(lambda x: st.sampled_from([x, x[:, None], x[None]]))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 12),
    st.sampled_from([0.0, -0.0, 1.0, float("inf"), 1j]),
    st.text("a1,\0\ud800", max_size=3),
    st.binary(max_size=2),
    st.sampled_from(Colour),
)
keys = st.text("ab1", max_size=2) | st.integers(0, 12)
nested = st.recursive(
    scalars | shaped | shaped.filter(lambda x: x.dtype.isnative).map(torch.from_numpy),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Point, inner, inner),
        st.dictionaries(keys, inner, max_size=2),
        st.dictionaries(keys, inner, max_size=2).map(UserDict),
        st.builds(Batch, inner, inner),
        st.builds(Labelled, inner, inner),
    ),
    max_leaves=6,
)


def described(x):
    """A slow, unambiguous description: what a value is made of, by Python's own tuples and equality."""
    if isinstance(x, np.ndarray | torch.Tensor):
        return type(x), str(x.dtype), tuple(x.shape), x.tolist()
    if isinstance(x, dict | UserDict):
        return type(x), [(described(key), described(value)) for key, value in x.items()]
    if isinstance(x, list | tuple):
        return type(x), [described(value) for value in x]
    if isinstance(x, Batch):
        return type(x), described(x.images), described(x.ids)
    if isinstance(x, Labelled):
        return type(x), described(x.images), described(x.label)
    return type(x), x if isinstance(x, int) else repr(x)


@given(nested, nested)
def test_digests_are_equal_exactly_where_values_are(a, b):
    assert (digest(a) == digest(b)) == (described(a) == described(b))


@given(nested)
def test_a_copy_has_the_same_digest(a):
    assert digest(copy.deepcopy(a)) == digest(a)


@given(nested, st.sampled_from([list, tuple, UserDict, Batch]))
def test_a_wrapped_value_has_another_digest(a, around):
    wrapped = {"x": a} if around is UserDict else [a]
    assert digest(around(wrapped)) != digest(a)


@given(st.lists(scalars, min_size=2, max_size=4))
def test_order_counts(values):
    turned = values[1:] + values[:1]
    assume(described(turned) != described(values))
    assert digest(turned) != digest(values)
    labelled = {str(n): value for n, value in enumerate(values)}
    assert digest(dict(reversed(labelled.items()))) != digest(labelled)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 23], [12, 3]),
        ([1, 2], [[1], 2]),
        ([1, 2], (1, 2)),
        (["ab"], ["a", "b"]),
        ({"a": 1}, OrderedDict(a=1)),
        (Batch(X), Batch(X + 1)),
        (Labelled(X, 1), Labelled(X, 2)),
        (True, 1),
        ([2**20_000], [2**20_000 + 1]),
        (1, 1.0),
        ("1", 1),
        (b"a", "a"),
        (np.float32(1), np.float64(1)),
        (np.float64(1), 1.0),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array([1], "M8[s]"), np.array([1], "M8[ms]")),
        (X, X.double()),
        (X, X.numpy()),
        (X.to(torch.bfloat16), X.half()),
        (torch.tensor([1j]), torch.tensor([1j]).conj()),
    ],
)
def test_values_that_look_alike_differ(a, b):
    assert digest(a) != digest(b)


def test_the_layout_in_memory_does_not_count():
    assert digest(X) == digest(X.T.contiguous().T) == digest(X.repeat_interleave(2, dim=1)[:, ::2])
    assert digest(X[1:]) == digest(X[1:].clone()) != digest(X[:-1])
    assert digest(X.numpy()) == digest(np.asfortranarray(X.numpy()))
    assert digest(torch.tensor([1j]).conj()) == digest(torch.tensor([complex(0, -1)]))
    assert digest(nn.Parameter(X)) == digest(nn.Parameter(X, requires_grad=False))


def test_an_attribute_of_a_tensor_counts():
    boxes = [X.clone().as_subclass(type("Boxes", (torch.Tensor,), {})) for _ in range(2)]
    boxes[1].canvas_size = 32
    assert digest(boxes[0]) != digest(boxes[1])


# What cannot be read is refused, not skipped


class Opaque:
    pass


@pytest.mark.parametrize(
    "value",
    [
        Opaque(),
        object(),
        {1, 2},
        iter([1]),
        np.array([Opaque()]),
        np.ma.masked_array([1, 2], [True, False]),
        X.to_sparse(),
        X.to("meta"),
        Batch,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_read_is_refused_wherever_it_stands(value):
    for around in (value, [value], {"x": value}, Batch(value), Labelled(X, value)):
        with pytest.raises(TypeError, match="cannot be digested"):
            digest(around)


def test_a_refusal_says_where():
    with pytest.raises(TypeError, match=r"^inputs\[0\]\['meta'\]\.ids, .*Opaque, "):
        digest(({"meta": Batch(X, Opaque())},), "inputs")
    with pytest.raises(TypeError, match=r"as a name, of type .*Opaque, cannot be digested"):
        digest({Opaque(): 1})


# The folder of a run


@pytest.fixture
def wrapper():
    return CredalWrapper([lambda batch, n=n: torch.sin(batch.images * (n + 1)) for n in range(3)])


def run(wrapper, folder, *batches, **options):
    return wrapper.predict(batches, output=folder, progress=False, inputs=lambda batch: batch, **options)


def test_other_values_in_a_dataclass_are_refused(wrapper, tmp_path):
    first = run(wrapper, tmp_path, Batch(X))
    with pytest.raises(ValueError, match="made from other inputs"):
        run(wrapper, tmp_path, Batch(X + 1))
    assert_same(run(wrapper, tmp_path, Batch(X)), first, atol=0)


def test_inputs_that_cannot_be_digested_need_a_key(wrapper, tmp_path):
    opaque = Opaque()
    opaque.images = X
    with pytest.raises(TypeError, match=r"inputs\[0\], .*Opaque, .* Give key=lambda batch: "):
        run(wrapper, tmp_path, opaque)
    first = run(wrapper, tmp_path, opaque, key=lambda batch: 7)
    assert_same(run(wrapper, tmp_path, opaque, key=lambda batch: 7), first, atol=0)
    with pytest.raises(ValueError, match="made from other inputs"):
        run(wrapper, tmp_path, opaque, key=lambda batch: 8)


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_weights_that_cannot_be_digested_are_refused(tmp_path):
    class Stateful(nn.Linear):
        def get_extra_state(self):
            return Opaque()

    model = Stateful(3, 2)
    with pytest.raises(TypeError, match=r"\['members\.0\._extra_state'\].* as a plain callable"):
        CredalWrapper([model]).predict(X, output=tmp_path, progress=False)
    assert not list(tmp_path.iterdir())
    CredalWrapper([lambda x: model(x)]).predict(X, output=tmp_path, progress=False)


def test_a_folder_with_digests_of_an_earlier_version_is_refused(wrapper, tmp_path):
    run(wrapper, tmp_path, Batch(X))
    manifest = json.loads((tmp_path / "predictions.json").read_text())
    del manifest["settings"]["digest"]
    (tmp_path / "predictions.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"another version .*Give a new folder"):
        run(wrapper, tmp_path, Batch(X))
