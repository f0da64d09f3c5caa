"""From a plain network to a trained Bayesian one: the conversion, and the objective of variational inference."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parameter import UninitializedParameter

from credalens.bayes.layers import CONVERTIBLE, INITIAL_STD, BayesianLayer, check_weights
from credalens.bayes.switches import Switch, bayesian_layers, check_module, fast_path_off


def to_bayesian(
    model: nn.Module,
    /,
    *,
    estimator: str = "reparameterization",
    prior_std: float = 1.0,
    initial_std: float = INITIAL_STD,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """A copy of the network in which every Linear and Conv1d/2d/3d is a :class:`BayesianLayer`.

    The given network is not touched (the copy is deep). The means start at its weights and all standard deviations at
    ``initial_std``: train the result with ``elbo_loss``, also where the network was trained. Until then its samples carry
    the same noise in every weight, whether or not the network bears it, which costs accuracy. Everything else is kept as it is:
    batch normalisation, recurrent layers, attention, transposed convolutions and *subclasses* of the
    converted layers, which may compute something else. A layer used in two places stays one layer; hooks on a
    converted layer see its mean output. ``estimator`` is "reparameterization" (BNNR) or "flipout" (BNNF); draws come from
    ``generator``, or from torch's global one where that is None.

    >>> from torch import nn
    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 9, 10))
    >>> bnn = to_bayesian(network, estimator="flipout", prior_std=1.0)
    >>> bnn(torch.zeros(2, 3, 5, 5)).shape
    torch.Size([2, 10])
    """
    check_module(model)
    modules = dict(model.named_modules())
    for name, module in modules.items():
        where = f"Layer {name!r}" if name else "The network"
        if isinstance(module, BayesianLayer):
            raise ValueError(f"{where} is Bayesian already; to_bayesian expects a plain network.")
        if any(isinstance(weight, UninitializedParameter) for weight in module.parameters(recurse=False)):
            raise ValueError(f"{where} ({type(module).__name__}) has no weights yet: run one batch through it.")
        if isinstance(module, CONVERTIBLE):
            check_weights(module, where)
    if not any(type(module) in CONVERTIBLE for module in modules.values()):
        kinds = ", ".join(sorted({type(module).__name__ for module in modules.values()}))
        raise ValueError(f"Nothing to convert: expected a Linear, Conv1d, Conv2d or Conv3d, found {kinds}.")
    network = copy.deepcopy(model)
    Switch(fast_path_off(network))
    options: dict[str, Any] = {"estimator": estimator, "prior_std": prior_std, "initial_std": initial_std}
    plain = (module for module in network.modules() if type(module) in CONVERTIBLE)
    bayesian = {layer: BayesianLayer(layer, **options, generator=generator) for layer in plain}
    # Duplicates are kept: a layer that is used under two names has to be replaced under both.
    for name, module in list(network.named_modules(remove_duplicate=False)):
        if name and module in bayesian:
            parent, _, leaf = name.rpartition(".")
            setattr(network.get_submodule(parent), leaf, bayesian[module])
    return bayesian.get(network, network)


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
    terms = []
    for layer in bayesian_layers(model):
        for mean, std in layer.gaussians():
            dtype = torch.promote_types(mean.dtype, torch.float32)
            mean, std = mean.to(dtype) / layer.prior_std, std.to(dtype) / layer.prior_std
            terms.append(((mean.square() + std.square() - 1) / 2 - std.log()).sum())
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
