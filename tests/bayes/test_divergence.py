"""The KL divergence and the ELBO."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.func import functional_call

from credalens.bayes import elbo_loss, kl, to_bayesian

scales = st.floats(1e-3, 20)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.integers(0, 10**6), scales, scales, st.sampled_from(["reparameterization", "flipout"]), st.booleans())
def test_kl_equals_torch_distributions(seed, prior_std, initial_std, estimator, bias):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Conv2d(2, 3, 2, bias=bias), nn.Flatten(), nn.Linear(12, 2)).double()
    bnn = to_bayesian(network, estimator=estimator, prior_std=prior_std, initial_std=initial_std)
    posterior_std, *prior = torch.tensor([initial_std, 0.0, prior_std], dtype=torch.double)
    expected = sum(kl_divergence(Normal(mean, posterior_std), Normal(*prior)).sum() for mean in network.parameters())
    torch.testing.assert_close(kl(bnn), expected, rtol=1e-9, atol=1e-9)
    assert kl(bnn) >= 0


def test_kl_is_zero_at_the_prior_only():
    bnn = to_bayesian(nn.Linear(3, 2).double(), prior_std=0.4, initial_std=0.4)
    for mean in bnn.mean.parameters():
        nn.init.zeros_(mean)
    torch.testing.assert_close(kl(bnn), torch.zeros((), dtype=torch.double))
    with torch.no_grad():
        bnn.bias_rho[0] += 0.1
    assert kl(bnn) > 0


class Divergence(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self):
        return kl(self.model)


def test_kl_gradients_reach_means_and_deviations():
    divergence = Divergence(to_bayesian(nn.Linear(3, 2).double()))
    names, values = zip(*divergence.named_parameters(), strict=True)
    assert len(names) == 4
    assert torch.autograd.gradcheck(
        lambda *values: functional_call(divergence, dict(zip(names, values, strict=True)), ()), values
    )


def test_half_precision_is_summed_in_single():
    bnn = to_bayesian(nn.Linear(300, 300).half(), initial_std=1e-2)
    divergence = kl(bnn)
    assert divergence.dtype is torch.float32
    torch.testing.assert_close(divergence.double(), kl(bnn.double()), rtol=1e-4, atol=0)


def test_elbo_is_cross_entropy_plus_the_weighted_divergence():
    torch.manual_seed(0)
    bnn = to_bayesian(nn.Linear(4, 3), prior_std=0.5)
    logits, labels = torch.randn(8, 3), torch.randint(3, (8,))
    likelihood = -logits.log_softmax(1)[torch.arange(8), labels].mean()
    torch.testing.assert_close(elbo_loss(logits, labels, bnn, kl_weight=0.25), likelihood + 0.25 * kl(bnn))
    torch.testing.assert_close(elbo_loss(logits, labels, bnn, kl_weight=0.0), likelihood)


@pytest.mark.parametrize("estimator", ["reparameterization", "flipout"])
def test_training_fits_data_and_a_strong_prior_wins(estimator):
    torch.manual_seed(0)
    x = torch.randn(64, 2)
    labels = (x[:, 0] > 0).long()
    accuracy, divergence = {}, {}
    for weight in (1e-3, 10.0):
        bnn = to_bayesian(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)), estimator=estimator)
        optimizer = torch.optim.Adam(bnn.parameters(), lr=0.05)
        for _ in range(150):
            optimizer.zero_grad()
            elbo_loss(bnn(x), labels, bnn, kl_weight=weight).backward()
            optimizer.step()
        accuracy[weight] = (bnn(x).argmax(1) == labels).float().mean().item()
        divergence[weight] = kl(bnn).item()
    assert accuracy[1e-3] > 0.9
    assert divergence[10.0] < divergence[1e-3]
    assert divergence[10.0] < 1


def test_errors():
    bnn, logits, labels = to_bayesian(nn.Linear(2, 2)), torch.zeros(1, 2), torch.zeros(1, dtype=torch.long)
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="kl_weight must be finite and not negative"):
            elbo_loss(logits, labels, bnn, kl_weight=weight)
    with pytest.raises(TypeError, match="kl_weight"):
        elbo_loss(logits, labels, bnn)
    with pytest.raises(ValueError, match="Linear has no Bayesian layers"):
        kl(nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"Expected a torch\.nn\.Module, got int"):
        kl(3)
