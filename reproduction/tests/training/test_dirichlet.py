"""The Dirichlet head: closed forms against sampling, against scipy's definitions, and their laws."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch.distributions import Dirichlet

from credalens_paper.training.losses import concentration, dirichlet_uncertainty, expected_probability

alphas = st.lists(st.floats(1e-2, 1e3), min_size=2, max_size=6).map(lambda a: torch.tensor(a, dtype=torch.double))
laws = settings(derandomize=True, deadline=None, max_examples=100)


def entropy(p: torch.Tensor) -> torch.Tensor:
    return -torch.xlogy(p, p).sum(-1) / math.log(2)


@pytest.mark.parametrize("alpha", [[1.0, 1.0, 1.0], [0.1, 0.3, 5.0], [20.0, 3.0, 0.5, 1.0], [300.0, 100.0]])
def test_closed_forms_match_sampling(alpha):
    torch.manual_seed(0)
    alpha = torch.tensor(alpha, dtype=torch.double)
    samples = Dirichlet(alpha).sample((20_000,))
    entropies = entropy(samples)
    uncertainty = dirichlet_uncertainty(alpha)
    error = 5 / math.sqrt(len(samples))
    assert (expected_probability(alpha) - samples.mean(0)).abs().le(error * samples.std(0)).all()
    assert abs(uncertainty.aleatoric - entropies.mean()) <= error * entropies.std()
    # The mean of the samples is off by their standard error, which the entropy magnifies by at most its slope.
    slope = (torch.log2(expected_probability(alpha)) + 1 / math.log(2)).abs()
    assert abs(uncertainty.total - entropy(samples.mean(0))) <= error * (slope * samples.std(0)).sum() + 1e-4


def test_two_classes_by_quadrature():
    alpha = (2.5, 0.8)

    def integrand(p):
        return stats.beta(*alpha).pdf(p) * stats.entropy([p, 1 - p], base=2)

    expected, _ = integrate.quad(integrand, 0, 1)
    actual = dirichlet_uncertainty(torch.tensor(alpha).double())
    assert actual.aleatoric.item() == pytest.approx(expected, rel=1e-6)


def test_hand_worked_flat_dirichlet():
    """Dir(1, 1): E[H] = 1 / (2 ln 2) bits, as the integral of -p ln p over [0, 1] is 1/4."""
    flat = dirichlet_uncertainty(torch.ones(2).double())
    assert flat.total.item() == pytest.approx(1)
    assert flat.aleatoric.item() == pytest.approx(1 / (2 * math.log(2)))
    assert flat.epistemic.item() == pytest.approx(1 - 1 / (2 * math.log(2)))


@laws
@given(alphas, st.floats(1.1, 20))
def test_laws(alpha, base):
    bits, other = dirichlet_uncertainty(alpha), dirichlet_uncertainty(alpha, base=base)
    torch.testing.assert_close(bits.total, bits.aleatoric + bits.epistemic)
    torch.testing.assert_close(bits.total, entropy(expected_probability(alpha)))
    assert 0 <= bits.aleatoric <= bits.total + 1e-12
    assert bits.epistemic >= 0
    for name in ("total", "aleatoric", "epistemic"):
        torch.testing.assert_close(getattr(other, name), getattr(bits, name) / math.log2(base))
    flipped = dirichlet_uncertainty(alpha.flip(0))
    torch.testing.assert_close(flipped.epistemic, bits.epistemic)


@laws
@given(alphas, st.floats(1.5, 100))
def test_agreement_lowers_epistemic_uncertainty_only(alpha, factor):
    loose, tight = dirichlet_uncertainty(alpha), dirichlet_uncertainty(factor * alpha)
    torch.testing.assert_close(tight.total, loose.total)
    assert tight.epistemic < loose.epistemic


def test_large_concentrations_keep_their_digits_in_single_precision():
    """For large concentrations mutual information is (C - 1) / (2 alpha_0) nats to first order."""
    alpha = torch.full((10,), 1e6)
    nats = dirichlet_uncertainty(alpha, base=math.e)
    assert nats.epistemic.dtype is torch.float32
    assert nats.epistemic.item() == pytest.approx(9 / (2 * 1e7), rel=1e-3)


def test_batches_keep_their_shape():
    alpha = torch.rand(4, 3, 5).add(0.1)
    uncertainty = dirichlet_uncertainty(alpha)
    assert uncertainty.total.shape == uncertainty.aleatoric.shape == uncertainty.epistemic.shape == (4, 3)
    torch.testing.assert_close(uncertainty.epistemic[2, 1], dirichlet_uncertainty(alpha[2, 1]).epistemic)


def test_head_is_an_exponential_whose_mean_is_the_softmax():
    logits = torch.tensor([[-1000.0, 0.0, 2.0], [80.0, 88.5, 88.6]])  # the sum overflows
    alpha = concentration(logits)
    assert (alpha > 0).all()
    torch.testing.assert_close(expected_probability(alpha), logits.softmax(-1), rtol=1e-4, atol=1e-6)
    assert concentration(logits.bfloat16()[:1]).dtype is torch.float32
    np.testing.assert_allclose(concentration(torch.tensor([1.0, 2.0])), np.exp([1.0, 2.0]), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_bad_concentrations_are_named(value):
    alpha = torch.ones(3, 2)
    alpha[1, 1] = value
    for function in (expected_probability, dirichlet_uncertainty):
        with pytest.raises(ValueError, match=r"1 of 6 are not, the first is .* at index \(1, 1\)"):
            function(alpha)


def test_errors():
    with pytest.raises(ValueError, match=r"exp\(logits\) must hold positive, finite.*diverged"):
        concentration(torch.tensor([0.0, 100.0]))
    with pytest.raises(ValueError, match="at least two classes"):
        dirichlet_uncertainty(torch.ones(4, 1))
    with pytest.raises(ValueError, match="at least two classes"):
        expected_probability(torch.tensor(1.0))
    with pytest.raises(ValueError, match="base must be finite and above 1"):
        dirichlet_uncertainty(torch.ones(2), base=1)
