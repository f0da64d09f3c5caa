"""How a member is called: inputs of any shape, dictionaries unpacked, batches taken apart and moved."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

__all__ = ["Call", "Function", "call_of_batch", "input_device", "moved", "resolved", "tensors"]

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""The positional and the keyword arguments of one call."""


@final
class Function(nn.Module):
    """A member that is no module: any callable from inputs to outputs. Its own weights, if any, stay unseen."""

    def __init__(self, function: Callable[..., Any], /) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def extra_repr(self) -> str:
        """The function, for printing."""
        return getattr(self.function, "__name__", repr(self.function))


def resolved(member: nn.Module, call: Call, /) -> Call:
    """The call as this member wants it: a lone dictionary becomes keywords where the member has them all.

    A Hugging Face model takes ``{"input_ids": ..., "attention_mask": ...}`` as keywords; a module written as
    ``forward(self, batch)`` gets the dictionary itself.
    """
    args, kwargs = call
    if len(args) == 1 and not kwargs and isinstance(args[0], Mapping) and _has_keywords(member, args[0]):
        return (), dict(args[0])
    return call


def _has_keywords(member: nn.Module, batch: Mapping[Any, Any]) -> bool:
    function = member.function if isinstance(member, Function) else member.forward
    try:
        inspect.signature(function).bind(**batch)
    except (TypeError, ValueError):  # keys that do not fit, or no signature to be had
        return False
    return True


def call_of_batch(batch: Any, inputs: Callable[[Any], Any] | None, /) -> Call:
    """What to call a member with for one batch of a loader: the first entry of a (inputs, labels) pair.

    ``inputs`` selects from the batch instead; a tuple that it returns becomes several positional arguments.
    """
    if inputs is not None:
        chosen = inputs(batch)
        return (chosen if isinstance(chosen, tuple) else (chosen,)), {}
    return (batch[0] if isinstance(batch, list | tuple) and batch else batch,), {}


def tensors(x: Any, /) -> Iterator[Tensor]:
    """Every tensor in nested dictionaries, lists and tuples."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, Mapping):
        for value in x.values():
            yield from tensors(value)
    elif isinstance(x, list | tuple):
        for value in x:
            yield from tensors(value)


def input_device(call: Call, /) -> torch.device | None:
    """The device of the first tensor among the inputs."""
    return next((x.device for x in tensors(call)), None)


def moved(x: Any, device: torch.device, /) -> Any:
    """``x`` with every tensor in it on ``device``."""
    if callable(getattr(x, "to", None)):
        return x.to(device)
    if isinstance(x, Mapping):
        return {key: moved(value, device) for key, value in x.items()}
    if isinstance(x, list | tuple):
        values = [moved(value, device) for value in x]
        return type(x)(*values) if hasattr(x, "_fields") else type(x)(values)
    return x
