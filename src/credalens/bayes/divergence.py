"""The objective of variational inference: expected log-likelihood and KL divergence to the prior."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from credalens.bayes.switches import bayesian_layers


def kl(model: nn.Module, /) -> Tensor:
    r"""Divergence of the weights' posterior from their prior, summed over the Bayesian layers, in nats.

    .. math:: \mathrm{KL} = \sum_i \log\frac{s}{\sigma_i} + \frac{\sigma_i^2 + \mu_i^2}{2 s^2} - \frac12

    with prior standard deviation s. A scalar with gradients; half-precision parameters are summed in float32.

    >>> from credalens.bayes import to_bayesian
    >>> bnn = to_bayesian(nn.Linear(2, 1), prior_std=0.5, initial_std=0.5)
    >>> _ = nn.init.zeros_(bnn.mean.weight), nn.init.constant_(bnn.mean.bias, 0.5)
    >>> round(kl(bnn).item(), 4)
    0.5
    """
    terms = [
        _gaussian_kl(mean, std, layer.prior_std) for layer in bayesian_layers(model) for mean, std in layer.gaussians()
    ]
    return torch.stack(terms).sum()


def elbo_loss(logits: Tensor, labels: Tensor, model: nn.Module, /, *, kl_weight: float) -> Tensor:
    r"""Negative evidence lower bound for each example: mean cross-entropy plus the weighted divergence.

    .. math:: -\frac1B \sum_n \log p(y_n \mid x_n, w) + \text{kl\_weight} \cdot \mathrm{KL}

    ``kl_weight`` is 1 / number of *training examples* for the usual bound; smaller is a colder posterior.
    ``logits`` is one sampled prediction of ``model`` (batch, classes, ...), ``labels`` holds class indices.

    >>> from credalens.bayes import to_bayesian
    >>> bnn, x, labels = to_bayesian(nn.Linear(4, 3)), torch.ones(6, 4), torch.zeros(6, dtype=torch.long)
    >>> elbo_loss(bnn(x), labels, bnn, kl_weight=1 / 6).shape
    torch.Size([])
    """
    if not (kl_weight >= 0 and math.isfinite(kl_weight)):
        raise ValueError(
            f"kl_weight must be finite and not negative, got {kl_weight!r}. "
            "The usual choice is 1 / number of training examples."
        )
    return functional.cross_entropy(logits, labels) + kl_weight * kl(model)


def _gaussian_kl(mean: Tensor, std: Tensor, prior_std: float) -> Tensor:
    dtype = torch.promote_types(mean.dtype, torch.float32)
    mean, std = mean.to(dtype) / prior_std, std.to(dtype) / prior_std
    return ((mean.square() + std.square() - 1) / 2 - std.log()).sum()
