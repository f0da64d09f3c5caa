"""One vectorised pass gives what the members give one by one, and takes the memory it says."""

import copy

import pytest
import torch
from torch import nn

from credalens.torch import CredalWrapper
from credalens.torch.calling import stacked_bytes
from tests.torch.agreement import assert_same


def network(seed, activation=nn.ReLU, width=12):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), activation(), nn.Flatten(), nn.Dropout(0.5),
        nn.Linear(4 * 16, width), activation(), nn.Linear(width, 5),
    ).eval()  # fmt: skip


@pytest.fixture
def members():
    members = [network(seed) for seed in range(5)]
    for n, member in enumerate(members):  # running statistics that differ, as after training
        member[1].running_mean += 0.1 * n
        member[1].running_var *= 1 + n
    return members


@pytest.fixture
def x():
    return torch.randn(7, 1, 4, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("chunk", [None, 1, 2, 5, 9])
def test_same_results_whatever_the_chunk(members, x, chunk):
    together = CredalWrapper(members, vectorised=True, member_chunk=chunk)(x)
    assert_same(together, CredalWrapper(members)(x))
    assert float(together.epistemic.min()) > 0.01


def test_in_double_precision_to_rounding(members, x):
    members = [member.double() for member in members]
    assert_same(CredalWrapper(members, vectorised=True)(x.double()), CredalWrapper(members)(x.double()), atol=1e-12)


def test_with_the_hull_and_over_a_data_set(members, x):
    together, apart = (CredalWrapper(members, vectorised=v, hull=True) for v in (True, False))
    assert_same(together(x), apart(x))
    torch.testing.assert_close(together(x).hull.upper_entropy(), apart(x).hull.upper_entropy(), rtol=0, atol=1e-6)
    assert_same(*(wrapper.predict(x, batch_size=3, progress=False) for wrapper in (together, apart)))


def test_changed_weights_count_at_once(members, x):
    wrapper = CredalWrapper(members, vectorised=True)
    before = wrapper(x)
    with torch.no_grad():
        members[3][-1].bias.data += torch.tensor([3.0, 0, 0, 0, 0])
    after = wrapper(x)
    assert_same(after, CredalWrapper(members)(x))
    assert (after.upper[:, 0] > before.upper[:, 0] + 0.1).all()


def test_the_members_come_out_as_they_went_in(members, x):
    before = [{name: value.clone() for name, value in member.state_dict().items()} for member in members]
    CredalWrapper(members, vectorised=True)(x)
    for member, state in zip(members, before, strict=True):
        assert all(torch.equal(value, state[name]) for name, value in member.state_dict().items())
        assert all(type(weight) is nn.Parameter for weight in member.parameters())


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x, shift=0.0):
        return {"logits": self.head(self.body(x).tanh()) + shift, "features": self.body(x)}


def test_dictionaries_in_and_out_and_keywords():
    members, batch = [Heads() for _ in range(3)], {"x": torch.ones(2, 4), "shift": torch.tensor([1.0, 0.0, 0.0])}
    assert_same(CredalWrapper(members, vectorised=True)(batch), CredalWrapper(members)(**batch))


def test_the_memory_it_states_is_the_memory_of_the_stacked_weights(members):
    of_one = sum(x.numel() * x.element_size() for x in [*members[0].parameters(), *members[0].buffers()])
    weights, buffers = torch.func.stack_module_state(members)
    stacked = sum(x.untyped_storage().nbytes() for x in [*weights.values(), *buffers.values()])
    assert CredalWrapper(members, vectorised=True).vectorised_bytes == stacked == 5 * of_one == stacked_bytes(members)
    assert CredalWrapper(members, vectorised=True, member_chunk=2).vectorised_bytes == 2 * of_one


class Scaled(nn.Module):
    def __init__(self, scale, activation=torch.relu):
        super().__init__()
        self.linear, self.scale, self.activation = nn.Linear(4, 3), scale, activation

    def forward(self, x):
        return self.scale * self.activation(self.linear(x))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([network(0), network(1), network(2, nn.Tanh)], r"member 2 has layer '2'=.*Tanh'> where member 0 has .*ReLU'>"),
        ([network(0), network(1, width=13)], r"member 1 has 5\.out_features=13 where member 0 has 12"),
        ([network(0), network(1).double()], r"member 1 has 0\.weight=\(\(4, 1, 3, 3\), torch.float64, 'cpu'\) where"),
        ([network(0), lambda x: x], "member 1 is a plain callable"),
        ([Scaled(1.0), Scaled(1.0), Scaled(2.0)], r"member 2 has scale=2\.0 where member 0 has 1\.0"),
        ([Scaled(1.0), Scaled(1.0, torch.tanh)], "member 1 has activation="),
        ([nn.Linear(3, 2), nn.Linear(3, 2, bias=False)], r"member 1 has bias=None where"),
    ],
)
def test_what_one_pass_cannot_reproduce_is_refused(members, message):
    with pytest.raises(ValueError, match=message):
        CredalWrapper(members, vectorised=True)


class WithALambda(nn.Module):
    def __init__(self, power=None):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.shape = (lambda x: x.tanh()) if power is None else (lambda x: x**power)

    def forward(self, x):
        return self.shape(self.linear(x))


def test_functions_made_by_one_line_are_the_same_unless_they_hold_something():
    members = [WithALambda() for _ in range(3)]
    assert_same(CredalWrapper(members, vectorised=True)(torch.ones(2, 4)), CredalWrapper(members)(torch.ones(2, 4)))
    with pytest.raises(ValueError, match="member 1 has shape="):
        CredalWrapper([WithALambda(2), WithALambda(3)], vectorised=True)


def test_hugging_face_models_from_different_places():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=8, patch_size=4,
        num_labels=3, attn_implementation="eager",
    )  # fmt: skip
    models = [transformers.ViTForImageClassification(config).eval() for _ in range(3)]
    models[1].name_or_path = "elsewhere"
    batch = {"pixel_values": torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))}
    assert_same(CredalWrapper(models, vectorised=True)(batch), CredalWrapper(models)(batch))


def test_members_in_different_modes_are_refused_and_eval_mends_it(x):
    members = [nn.Sequential(nn.Flatten(), nn.Linear(16, 3)) for _ in range(3)]
    members[1].eval()
    wrapper = CredalWrapper(members, vectorised=True)
    with pytest.raises(ValueError, match=r"False for member 1 and True for member 0\. Call \.eval\(\)"):
        wrapper(x)
    assert_same(wrapper.eval()(x), CredalWrapper(members)(x))


@pytest.mark.parametrize("chunk", [None, 2])
def test_bad_values_name_the_member(members, x, chunk):
    with torch.no_grad():
        members[3][-1].bias[2] = float("nan")
    with pytest.raises(ValueError, match=r"7 of 7 rows .* member 3 .* class 2 is nan"):
        CredalWrapper(members, vectorised=True, member_chunk=chunk)(x)


def test_it_is_one_pass(members, x, monkeypatch):
    calls = []
    plain = nn.Sequential.forward
    monkeypatch.setattr(nn.Sequential, "forward", lambda self, x: calls.append(1) or plain(self, x))
    CredalWrapper(copy.deepcopy(members), vectorised=True)(x)
    assert len(calls) == 1
    CredalWrapper(members)(x)
    assert len(calls) == 6
