"""From a plain network to a Bayesian one."""

import copy
from functools import partial

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from credalens.bayes.layers import CONVERTIBLE, INITIAL_STD, BayesianLayer, check_options, check_weights
from credalens.bayes.switches import Switch, check_module, fast_path_off


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
    check_options(estimator, prior_std, initial_std)
    _check_convertible(model)
    network = copy.deepcopy(model)
    Switch(fast_path_off(network))
    bayesian = partial(
        BayesianLayer, estimator=estimator, prior_std=prior_std, initial_std=initial_std, generator=generator
    )
    layers = (module for module in network.modules() if type(module) in CONVERTIBLE)
    return _replace(network, {layer: bayesian(layer) for layer in layers})


def _replace(network: nn.Module, bayesian: dict[nn.Module, BayesianLayer]) -> nn.Module:
    # Duplicates are kept: a layer that is used under two names has to be replaced under both.
    for name, module in list(network.named_modules(remove_duplicate=False)):
        if name and module in bayesian:
            parent, _, leaf = name.rpartition(".")
            setattr(network.get_submodule(parent), leaf, bayesian[module])
    return bayesian.get(network, network)


def _check_convertible(model: nn.Module) -> None:
    modules = dict(model.named_modules())
    for name, module in modules.items():
        _check_plain(module, f"Layer {name!r}" if name else "The network")
    if not any(type(module) in CONVERTIBLE for module in modules.values()):
        kinds = ", ".join(sorted({type(module).__name__ for module in modules.values()}))
        raise ValueError(f"Nothing to convert: expected a Linear, Conv1d, Conv2d or Conv3d, found {kinds}.")


def _check_plain(module: nn.Module, where: str) -> None:
    if isinstance(module, BayesianLayer):
        raise ValueError(f"{where} is Bayesian already; to_bayesian expects a plain network.")
    if any(isinstance(weight, UninitializedParameter) for weight in module.parameters(recurse=False)):
        raise ValueError(f"{where} ({type(module).__name__}) has no weights yet: run one batch through it.")
    if isinstance(module, CONVERTIBLE):
        check_weights(module, where)
