"""On a device that runs ahead of the CPU few members are taken together: the same numbers, the same words about errors.

Such a device is a GPU; here the CPU plays one.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from credalens.torch import CredalWrapper, folding, wrapper


@pytest.fixture
def ahead(monkeypatch):
    for module in (folding, wrapper):
        monkeypatch.setattr(module, "runs_ahead", lambda device: True)


def members(count, seed=0):
    torch.manual_seed(seed)
    return [nn.Linear(6, 4).eval() for _ in range(count)]


FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")


@pytest.mark.parametrize("count", [1, 5, wrapper.FEW, wrapper.FEW + 1])
@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_prediction(count, outputs, dtype, monkeypatch):
    x = torch.randn(7, 6, dtype=dtype)
    networks = [
        nn.Sequential(m.to(dtype), nn.Softmax(-1)) if outputs == "probabilities" else m.to(dtype)
        for m in members(count)
    ]
    folded = CredalWrapper(networks, outputs=outputs)(x)
    for module in (folding, wrapper):
        monkeypatch.setattr(module, "runs_ahead", lambda device: True)
    together = CredalWrapper(networks, outputs=outputs)(x)
    for name in FIELDS:
        torch.testing.assert_close(
            getattr(together, name), getattr(folded, name), rtol=0, atol=1e-6 if dtype == torch.float32 else 1e-12
        )
    torch.testing.assert_close(together.classical.total, folded.classical.total)


def test_values_are_not_looked_at_before_all_members_have_run(ahead, monkeypatch):
    looked = []
    monkeypatch.setattr(folding, "check_values", lambda raw, kind, who: looked.append(who))
    CredalWrapper(members(3))(torch.randn(2, 6))
    assert looked == []


@pytest.mark.parametrize("options", [{}, {"hull": True}, {"gradients": True}])
def test_a_bad_member_is_still_named(ahead, options):
    bad = members(3)
    with torch.no_grad():
        bad[1].bias[2] = float("nan")
    with pytest.raises(ValueError, match=r"member 1 \(Linear\) returned logits of which 2 of 8 are not finite"):
        CredalWrapper(bad, **options)(torch.randn(2, 6))


def test_many_members_are_still_folded(ahead, monkeypatch):
    monkeypatch.setattr(wrapper, "Keep", None)
    prediction = CredalWrapper(members(wrapper.FEW + 1))(torch.randn(2, 6))
    assert prediction.n_members == wrapper.FEW + 1


def test_only_cuda_runs_ahead():
    assert folding.runs_ahead(torch.device("cuda", 1))
    assert not folding.runs_ahead(torch.device("cpu"))
    assert not folding.runs_ahead(None)
