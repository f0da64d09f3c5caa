"""Temporary settings of a network: sampling off, another generator, dropout that stays random in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

import torch
from torch import nn

from credalens.bayes.layers import BayesianLayer

Setting = tuple[nn.Module, str, object]
"""``(module, attribute, value)``."""


@final
class Switch:
    """Settings that hold until the end of a ``with`` block, or until ``restore()``; ``mean_network`` and others return it."""

    def __init__(self, settings: Iterable[Setting], /):
        self._before: list[Setting] = []
        for module, attribute, value in settings:
            self._before.append((module, attribute, getattr(module, attribute)))
            setattr(module, attribute, value)

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.restore()

    def restore(self) -> None:
        """Put everything back as it was; a second call does nothing."""
        while self._before:
            setattr(*self._before.pop())


def mean_network(model: nn.Module, /) -> Switch:
    """Switch sampling off: every Bayesian layer uses the means of its weights.

    >>> from credalens.bayes import to_bayesian
    >>> bnn, x = to_bayesian(nn.Linear(4, 3)), torch.ones(1, 4)
    >>> with mean_network(bnn):
    ...     torch.equal(bnn(x), bnn(x))
    True
    """
    return Switch([(layer, "sample", False) for layer in bayesian_layers(model)])


def use_generator(model: nn.Module, generator: torch.Generator | None, /) -> Switch:
    """Draw the samples of every Bayesian layer from ``generator`` (None: torch's global one).

    >>> from credalens.bayes import to_bayesian
    >>> bnn, x = to_bayesian(nn.Linear(4, 3)), torch.ones(1, 4)
    >>> with use_generator(bnn, torch.Generator().manual_seed(0)):
    ...     first = bnn(x)
    >>> with use_generator(bnn, torch.Generator().manual_seed(0)):
    ...     torch.equal(first, bnn(x))
    True
    """
    return Switch([(layer, "generator", generator) for layer in bayesian_layers(model)])


def bayesian_layers(model: nn.Module, /) -> list[BayesianLayer]:
    """The Bayesian layers of a network, each once; an error where there are none."""
    check_module(model)
    layers = [module for module in model.modules() if isinstance(module, BayesianLayer)]
    if not layers:
        raise ValueError(f"{type(model).__name__} has no Bayesian layers; convert it with to_bayesian(model).")
    return layers


def check_module(model: object, /) -> None:
    """Refuse what is not a torch module."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"Expected a torch.nn.Module, got {type(model).__name__}.")


def fast_path_off(model: nn.Module, /) -> Iterator[Setting]:
    """Settings that keep torch's fused transformer encoder from bypassing its layers in evaluation mode."""
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoderLayer):
            yield module, "activation_relu_or_gelu", 0
        elif isinstance(module, nn.TransformerEncoder):
            yield module, "use_nested_tensor", False


DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def activate_dropout(model: nn.Module, /) -> Switch:
    """Put the dropout layers, and only those, in training mode (Gal and Ghahramani 2016).

    Holds from the call until the end of the ``with`` block, or until ``restore()``. Dropout that is not a layer
    cannot be switched on: ``functional.dropout`` in a forward method, or what ``nn.MultiheadAttention`` does
    to its attention weights and ``nn.LSTM`` between its layers.

    >>> import torch
    >>> network = nn.Sequential(nn.Linear(4, 64), nn.BatchNorm1d(64), nn.Dropout(), nn.Linear(64, 3)).eval()
    >>> x = torch.ones(2, 4)
    >>> with torch.no_grad(), activate_dropout(network):
    ...     members = torch.stack([network(x) for _ in range(10)])
    >>> bool((members.std(dim=0) > 0).all()), any(module.training for module in network.modules())
    (True, False)
    """
    check_module(model)
    layers = [module for module in model.modules() if isinstance(module, DROPOUT)]
    if not layers:
        raise ValueError(
            f"{type(model).__name__} has no dropout layers to activate, so all samples would be identical. "
            "Dropout called as a function in a forward method cannot be switched; make it an nn.Dropout."
        )
    return Switch([*((layer, "training", True) for layer in layers), *fast_path_off(model)])
