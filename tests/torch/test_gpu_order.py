"""On a device that runs ahead of the CPU few members are taken together: the same numbers, the same words about errors.

Such a device is a GPU; here the CPU plays one.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from credalens.torch import CredalWrapper, member_outputs, operators, wrapper
from tests.torch.agreement import assert_same
from tests.torch_calls import TorchCalls


@pytest.fixture
def ahead(monkeypatch):
    monkeypatch.setattr(wrapper, "_runs_ahead", lambda device: True)


def members(count, seed=0):
    torch.manual_seed(seed)
    return [nn.Linear(6, 4).eval() for _ in range(count)]


@pytest.mark.parametrize("count", [1, 5, wrapper.FEW, wrapper.FEW + 1])
@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.filterwarnings("ignore:there is a single member")
def test_the_same_prediction(count, kind, dtype, monkeypatch):
    x = torch.randn(7, 6, dtype=dtype)
    networks = [
        nn.Sequential(m.to(dtype), nn.Softmax(-1)) if kind == "probabilities" else m.to(dtype) for m in members(count)
    ]
    folded = CredalWrapper(networks, outputs=kind)(x)
    monkeypatch.setattr(wrapper, "_runs_ahead", lambda device: True)
    together = CredalWrapper(networks, outputs=kind)(x)
    assert_same(together, folded, atol=1e-6 if dtype == torch.float32 else 1e-12)


def test_values_are_not_looked_at_before_all_members_have_run(ahead, monkeypatch):
    checked = []
    monkeypatch.setattr(member_outputs, "read_logits", checked.append)
    CredalWrapper(members(3))(torch.randn(2, 6))
    assert checked == []


@pytest.mark.parametrize("options", [{}, {"hull": True}, {"gradients": True}])
def test_a_bad_member_is_still_named(ahead, options):
    bad = members(3)
    with torch.no_grad():
        bad[1].bias[2] = float("nan")
    with pytest.raises(ValueError, match=r"2 of 2 rows .* member 1 \(Linear\) .* class 2 is nan"):
        CredalWrapper(bad, **options)(torch.randn(2, 6))


def looked_at_and_run(monkeypatch, **options):
    """In which order members are looked at and run."""
    events, networks = [], members(3)
    monkeypatch.setattr(wrapper, "check_mode", lambda member, who, **_: events.append(f"look {networks.index(member)}"))
    for i, network in enumerate(networks):
        network.register_forward_pre_hook(lambda *_, i=i: events.append(f"run {i}"))
    CredalWrapper(networks, **options)(torch.randn(2, 6))
    return events


def test_a_member_is_looked_at_while_the_one_before_runs(ahead, monkeypatch):
    assert looked_at_and_run(monkeypatch) == ["look 0", "run 0", "look 1", "run 1", "look 2", "run 2"]


def test_elsewhere_all_are_looked_at_before_the_first_runs(monkeypatch):
    assert looked_at_and_run(monkeypatch) == ["look 0", "look 1", "look 2", "run 0", "run 1", "run 2"]


def test_a_vectorised_pass_runs_all_at_once_so_all_are_looked_at_before(ahead, monkeypatch):
    assert looked_at_and_run(monkeypatch, vectorised=True)[:3] == ["look 0", "look 1", "look 2"]


def test_a_member_in_the_wrong_mode_is_refused_however_deep_its_layer(ahead):
    bad = [nn.Sequential(m, nn.Sequential(nn.Identity(), nn.Dropout())).eval() for m in members(2)]
    bad[1][1][1].train()
    with pytest.raises(ValueError, match=r"member 1 .* layer '1\.1' \(Dropout\)"):
        CredalWrapper(bad)(torch.randn(2, 6))


def test_modules_that_hold_each_other_are_walked_once():
    loop = members(2)
    loop[0].other, loop[1].other = loop[1], loop[0]
    assert CredalWrapper(loop)(torch.randn(2, 6)).n_members == 2


def test_outputs_go_to_wrap_as_they_are(ahead, monkeypatch):
    tensors = [torch.randn(2, 4) for _ in range(5)]
    monkeypatch.setattr(operators, "wrap_members", lambda given, **_: given)
    adapter = CredalWrapper([lambda x, y=y: y for y in tensors])
    with TorchCalls() as calls:
        given = adapter.predict_batch(torch.ones(1))
    assert all(x is y for x, y in zip(given, tensors, strict=True))
    assert [name for name in calls.names if name != "ones"] == []


def test_many_members_are_still_folded(ahead, monkeypatch):
    monkeypatch.setattr(operators, "wrap_members", None)
    prediction = CredalWrapper(members(wrapper.FEW + 1))(torch.randn(2, 6))
    assert prediction.n_members == wrapper.FEW + 1


def test_only_cuda_runs_ahead():
    assert wrapper._runs_ahead(torch.device("cuda", 1))
    assert not wrapper._runs_ahead(torch.device("cpu"))
    assert not wrapper._runs_ahead(None)
