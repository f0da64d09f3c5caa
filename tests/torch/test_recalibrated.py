"""A recalibrated wrapper predicts what wrap does of the same outputs, in each of its ways of running members."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from credalens import Recalibration, wrap_logits
from credalens.core.recalibration import divided
from credalens.prediction import ARRAYS
from credalens.torch import CredalWrapper, load_prediction, wrapper
from tests.torch.agreement import assert_same

TEMPERATURES = [0.5, 1.0, 1.5, 2.0, 3.0]
RECALIBRATION = Recalibration.of(TEMPERATURES, classes=4)


@pytest.fixture
def members():
    torch.manual_seed(0)
    return [nn.Linear(6, 4).eval() for _ in TEMPERATURES]


@pytest.fixture
def x():
    return torch.randn(7, 6, generator=torch.Generator().manual_seed(1))


def detached(prediction):
    return replace(prediction, **{name: getattr(prediction, name).detach() for name in ARRAYS})


def expected(members, x):
    with torch.no_grad():
        return wrap_logits(torch.stack([member(x) for member in members]), recalibration=RECALIBRATION)


@pytest.mark.parametrize("options", [{}, {"hull": True}, {"gradients": True}, {"vectorised": True}])
@pytest.mark.parametrize("together", [False, True])
def test_the_wrapper_predicts_as_wrap_does(members, x, options, together, monkeypatch):
    monkeypatch.setattr(wrapper, "_runs_ahead", lambda device: together)
    prediction = CredalWrapper(members, recalibration=RECALIBRATION, **options)(x)
    assert prediction.temperatures == tuple(TEMPERATURES)
    assert prediction.total.requires_grad == bool(options.get("gradients"))
    assert_same(detached(prediction), expected(members, x), atol=2e-6)


@pytest.mark.parametrize("gradients", [False, True])
def test_probabilities_are_recalibrated_as_their_logits_are(members, x, gradients):
    networks = [nn.Sequential(member, nn.Softmax(-1)) for member in members]
    made = CredalWrapper(networks, outputs="probabilities", recalibration=RECALIBRATION, gradients=gradients)(x)
    assert_same(detached(made), expected(members, x), atol=2e-6)


def test_gradients_reach_the_weights_also_past_zeros():
    p = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]], dtype=torch.float64, requires_grad=True)
    divided(p, 2.0, "probs").square().sum().backward()
    assert p.grad.isfinite().all()
    assert p.grad[1].abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_tensor_is_divided_in_its_own_precision_and_stays_a_distribution(dtype):
    logits = 3 * torch.randn(5, 50, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    p = logits.softmax(-1).to(dtype)
    temperatures = torch.tensor(TEMPERATURES, dtype=torch.float64)[:, None, None]
    q = divided(p, temperatures, "probs")
    assert q.dtype == dtype
    eps = torch.finfo(dtype).eps
    assert (q.double().sum(-1) - 1).abs().max() < 4 * eps
    torch.testing.assert_close(q.double(), (logits / temperatures).softmax(-1), atol=8 * eps, rtol=8 * eps)


def test_rows_that_are_no_distributions_are_refused_as_they_came(members, x):
    networks = [nn.Sequential(member, nn.Softmax(-1)) for member in members[:4]] + [members[4]]
    with pytest.raises(ValueError, match="If these are logits"):
        CredalWrapper(networks, outputs="probabilities", recalibration=RECALIBRATION)(x)


def test_probabilities_taken_for_logits_are_noticed_before_they_are_divided(members, x):
    networks = [nn.Sequential(member, nn.Softmax(-1)) for member in members]
    with pytest.warns(UserWarning, match='outputs="probabilities"'):
        CredalWrapper(networks, recalibration=RECALIBRATION)(x)


def test_a_data_set_in_a_folder_knows_its_temperatures(members, x, tmp_path):
    recalibrated = CredalWrapper(members, recalibration=RECALIBRATION)
    made = recalibrated.predict(x, batch_size=3, output=tmp_path / "run", progress=False)
    resumed = recalibrated.predict(x, batch_size=3, output=tmp_path / "run", progress=False)
    for prediction in (made, resumed, load_prediction(tmp_path / "run")):
        assert prediction.temperatures == tuple(TEMPERATURES)
        np.testing.assert_allclose(prediction.total, expected(members, x).total, atol=2e-6)
    with pytest.raises(ValueError, match="temperatures"):
        CredalWrapper(members).predict(x, batch_size=3, output=tmp_path / "run", progress=False)


def test_a_compiled_wrapper_is_recalibrated(members, x):
    made = torch.compile(CredalWrapper(members, recalibration=RECALIBRATION), backend="eager", fullgraph=True)(x)
    assert made.temperatures == tuple(TEMPERATURES)
    assert_same(made, expected(members, x), atol=2e-6)


def test_a_summary_keeps_the_temperatures(members, x):
    summary = CredalWrapper(members, recalibration=RECALIBRATION).summarise(x)
    assert summary.prediction().temperatures == tuple(TEMPERATURES)


def test_samples_have_a_temperature_each():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5)).eval()
    made = CredalWrapper(network, samples=5, recalibration=RECALIBRATION)(torch.ones(2, 6))
    assert made.temperatures == tuple(TEMPERATURES)
    with pytest.raises(ValueError, match="for 5 members and 6 came"):
        CredalWrapper(network, samples=6, recalibration=RECALIBRATION)


def test_what_is_fitted_on_outputs_makes_them_better(x):
    """The whole way: outputs with labels, a recalibration, a wrapper that uses it."""
    torch.manual_seed(3)
    x, members = torch.randn(800, 6), [nn.Linear(6, 4).eval() for _ in range(3)]
    with torch.no_grad():
        logits = torch.stack([member(x) for member in members])
    labels = torch.distributions.Categorical(logits=logits.mean(0)).sample()
    recalibration = Recalibration.fit(5 * logits[:, :400], labels[:400], logits=True)
    sharp = [nn.Sequential(member, Scale(5.0)) for member in members]

    def loss(prediction):
        return -prediction.probability[torch.arange(400), labels[400:]].log().mean()

    assert loss(CredalWrapper(sharp, recalibration=recalibration)(x[400:])) < loss(CredalWrapper(sharp)(x[400:])) - 0.3
    assert recalibration.temperatures[0] > 2


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, z):
        return self.factor * z


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_members_on_a_gpu_are_divided_where_they_are(kind):
    """Its tensors are the CPU's here."""
    pytest.importorskip("triton", reason="Triton is not installed; CUDA torch brings it")
    from credalens.cuda import GpuMembers

    p = (3 * torch.randn(5, 7, 4, generator=torch.Generator().manual_seed(0))).softmax(-1)
    members = GpuMembers(p if kind == "probs" else p.log(), (7,), kind).recalibrated(RECALIBRATION)
    divided_p = members.tensor if kind == "probs" else members.tensor.softmax(-1)
    torch.testing.assert_close(divided_p, RECALIBRATION.apply(p), atol=1e-6, rtol=0)
