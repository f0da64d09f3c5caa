"""Checks of a member before it runs: its layers are in the right mode, its weights on the device of the inputs."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from credalens.bayes.dropout import DROPOUT

WITH_DROPOUT = (nn.RNNBase, nn.MultiheadAttention)


def check_mode(member: nn.Module, name: str, /, *, sampled: bool) -> None:
    """Refuse a member whose prediction would depend on chance or on the rest of the batch.

    Refused are dropout, batch normalisation and similar layers in training mode; layers that behave the same in both modes
    may be in either. A member that is ``sampled`` may have its dropout on. Dropout called as a function is not detected.
    """
    if not _any_training(member):
        return
    for layer_name, layer in member.named_modules():
        is_dropout = isinstance(layer, DROPOUT)
        if not layer.training or not _differs_in_training(layer) or (sampled and is_dropout):
            continue
        what = f"its layer {layer_name!r} ({type(layer).__name__})" if layer_name else "it"
        advice = " For MC-dropout pass the module with samples=50." if is_dropout else ""
        raise ValueError(
            f"{name} is in the wrong mode: {what} is in training mode, so predictions would change from call to call. "
            f"Call .eval() on the wrapper or the member first.{advice}"
        )


def _any_training(member: nn.Module) -> bool:
    """Whether a layer is in training mode. Runs at every call, and takes a third of the time of ``member.modules()``."""
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
    if isinstance(layer, _NormBase):  # batch and instance normalisation: running statistics differ, batch ones do not
        return layer.track_running_stats
    if isinstance(layer, WITH_DROPOUT):
        return layer.dropout > 0
    return isinstance(layer, nn.RReLU)


def check_device(member: nn.Module, device: torch.device | None, name: str, /) -> None:
    """Refuse a member whose weights are all on one device that is not the inputs'."""
    devices = set()
    for tensors in (member.parameters(), member.buffers()):
        for tensor in tensors:
            if device is None or tensor.device == device:
                return  # almost always at the first weight; this runs at every call
            devices.add(tensor.device)
    if len(devices) == 1:
        raise ValueError(
            f"{name} is on {devices.pop()} and the input on {device}; move one of them: wrapper.to({str(device)!r}), "
            "or the input to the members' device."
        )
