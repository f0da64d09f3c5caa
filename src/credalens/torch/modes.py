"""Whether members are in the right mode: layers that must be still, and dropout that must not be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from credalens.bayes import BayesianLayer, activate_dropout
from credalens.bayes.dropout import DROPOUT

__all__ = ["check_device", "check_mode", "sampling"]

WITH_DROPOUT = (nn.RNNBase, nn.MultiheadAttention)


def check_mode(member: nn.Module, who: str, /, *, sampled: bool) -> None:
    """Refuse a member whose prediction would depend on chance or on the rest of the batch.

    Looks for dropout, batch normalisation and their kin in training mode; a module in training mode without such layers
    is harmless. For a member that is sampled, dropout is welcome. Dropout called as a function cannot be seen.
    """
    if not _some_training(member):
        return
    for name, layer in member.named_modules():
        if not layer.training or not _differs_in_training(layer) or (sampled and isinstance(layer, DROPOUT)):
            continue
        what = f"its layer {name!r} ({type(layer).__name__})" if name else "it"
        advice = "" if sampled or not isinstance(layer, DROPOUT) else " For MC-dropout pass the module with samples=50."
        raise ValueError(
            f"{who} is in the wrong mode: {what} is in training mode, so predictions would change from call to call. "
            f"Call .eval() on the wrapper or the member first.{advice}"
        )


def _some_training(member: nn.Module) -> bool:
    """Whether a layer is in training mode, at a third of the price of a walk by names: this runs at every call."""
    layers, seen = [member], {member}
    for layer in layers:
        if layer.training:
            return True
        for child in layer._modules.values():
            if child is not None and child not in seen:
                seen.add(child)
                layers.append(child)
    return False


def _differs_in_training(layer: nn.Module) -> bool:
    if isinstance(layer, DROPOUT):
        return layer.p > 0
    if isinstance(layer, _NormBase):  # batch and instance normalisation; without running statistics both modes are one
        return layer.track_running_stats
    if isinstance(layer, WITH_DROPOUT):
        return layer.dropout > 0
    return isinstance(layer, nn.RReLU)


def check_device(member: nn.Module, device: torch.device | None, who: str, /) -> None:
    """Refuse a member whose weights all lie on one device that is not the inputs'."""
    found = set()
    for place in _devices(member):
        if device is None or place == device:
            return  # the first weight tells in almost all cases, and this runs at every call
        found.add(place)
    if len(found) == 1:
        raise ValueError(
            f"{who} is on {found.pop()} and the input on {device}; move one of them: wrapper.to({str(device)!r}), "
            "or the input to the members' device."
        )


def _devices(member: nn.Module) -> Iterator[torch.device]:
    yield from (x.device for x in member.parameters())
    yield from (x.device for x in member.buffers())


def sampling(member: nn.Module, /) -> AbstractContextManager[Any]:
    """Dropout layers on while a member is sampled; in a Bayesian network the weights are what is sampled."""
    kinds = tuple(type(layer) for layer in member.modules())
    has_dropout = any(issubclass(kind, DROPOUT) for kind in kinds)
    return activate_dropout(member) if has_dropout and BayesianLayer not in kinds else nullcontext()
