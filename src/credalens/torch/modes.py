"""Checks of a member before it runs, and sampling one member several times with its dropout layers on."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from credalens.bayes import BayesianLayer, activate_dropout
from credalens.bayes.switches import DROPOUT

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


def sampling(member: nn.Module, /) -> AbstractContextManager[Any]:
    """Switch the dropout layers on; in a Bayesian network only the weights are sampled and dropout stays off."""
    layer_types = {type(layer) for layer in member.modules()}
    has_dropout = any(issubclass(layer_type, DROPOUT) for layer_type in layer_types)
    return activate_dropout(member) if has_dropout and BayesianLayer not in layer_types else nullcontext()


@final
class SampleWatch:
    """Notices when all samples of a member are identical. Keeps the first sample until another one differs."""

    def __init__(self) -> None:
        self.count = 0
        self._first: Tensor | None = None

    def see(self, sample: Tensor, /) -> None:
        """Compare one more sample with the first; a graph has no values to compare."""
        if torch.compiler.is_compiling():
            return
        self.count += 1
        if self.count == 1:
            self._first = sample.detach()
        elif self._first is not None and not torch.equal(self._first, sample):
            self._first = None

    @property
    def identical(self) -> bool:
        """Whether there were several samples and none differed."""
        return self.count > 1 and self._first is not None

    def warn(self, name: str, /) -> None:
        """Warn that sampling this member has no effect."""
        warnings.warn(
            f"all {self.count} samples of {name} are identical, so epistemic uncertainty will be zero: the module is "
            "deterministic. Pass several members, or a network that was trained with dropout layers, or one that was converted "
            "with credalens.bayes.to_bayesian and trained with elbo_loss since: until then its weights only carry noise, which "
            "costs accuracy.",
            stacklevel=2,
        )
