"""What users may pass as members, and how a member is called: arguments, inputs in a batch, device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn


@final
class CallableModule(nn.Module):
    """A callable from inputs to outputs as a module. Weights that the callable holds are not registered."""

    def __init__(self, function: Callable[..., Any], /) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def extra_repr(self) -> str:
        """The name of the function, for printing."""
        name = getattr(self.function, "__name__", None)
        return repr(self.function) if name is None else name  # asked for only then: torch.compile cannot trace it


def member_modules(members: Iterable[Callable[..., Any]] | Callable[..., Any], samples: int | None, /) -> nn.ModuleList:
    """The members as a list of modules; other callables become a ``CallableModule``."""
    if _is_single(members):
        if samples is None:
            raise ValueError(
                f"one {type(members).__name__} is one prediction: pass samples=50 if it is stochastic (dropout, a Bayesian "
                "network), or a list of members."
            )
        members = [members]  # type: ignore[list-item]
    if not isinstance(members, Iterable) or isinstance(members, str | Mapping):
        raise TypeError(f"members must be modules or callables in a list; got {type(members).__name__}.")
    modules = nn.ModuleList([_as_module(member, n) for n, member in enumerate(members)])
    if not modules:
        raise ValueError("a CredalWrapper needs at least one member; got none.")
    return modules


def _is_single(members: Any) -> bool:
    if isinstance(members, nn.Module):
        return not isinstance(members, nn.ModuleList)
    return callable(members) and not isinstance(members, Iterable)


def _as_module(member: Any, n: int) -> nn.Module:
    if isinstance(member, type):
        raise TypeError(
            f"member {n} must be a module or another callable; got the class {member.__name__}, not an instance."
        )
    if not callable(member):
        raise TypeError(f"member {n} must be a module or another callable; got {member!r}.")
    return member if isinstance(member, nn.Module) else CallableModule(member)


def member_name(n: int, member: nn.Module, /) -> str:
    """How errors name a member: its position, and its class or function."""
    return f"member {n} ({member.extra_repr() if isinstance(member, CallableModule) else type(member).__name__})"


Call = tuple[tuple[Any, ...], dict[str, Any]]
"""The positional and the keyword arguments of a call."""


def member_call(member: nn.Module, call: Call, /) -> Call:
    """The arguments for this member: a lone dictionary becomes keywords if the member accepts all of them.

    A Hugging Face model takes ``{"input_ids": ..., "attention_mask": ...}`` as keywords; a module with
    ``forward(self, batch)`` takes the dictionary itself.
    """
    args, kwargs = call
    if len(args) == 1 and not kwargs and isinstance(args[0], Mapping) and _accepts_keywords(member, args[0]):
        return (), dict(args[0])
    return call


def _accepts_keywords(member: nn.Module, keywords: Mapping[Any, Any]) -> bool:
    function = member.function if isinstance(member, CallableModule) else member.forward
    try:
        inspect.signature(function).bind(**keywords)
    except (TypeError, ValueError):  # other keywords, or a callable without a signature
        return False
    return True


@contextmanager
def naming_member(name: str, call: Call, /) -> Iterator[None]:
    """Name the member that raised an error, and the remedy if it cannot take such a batch."""
    try:
        yield
    except Exception as error:
        error.add_note(f"Raised by {name} of the CredalWrapper.")
        remedy = _remedy(*call) if isinstance(error, TypeError | AttributeError | KeyError) else ""
        if remedy:
            raise TypeError(f"{name} got {remedy} It raised {type(error).__name__}: {error}") from error
        raise


def _remedy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    batch = args[0] if len(args) == 1 and not kwargs else None
    if isinstance(batch, Mapping):
        keys = list(batch)
        return (
            f"the batch itself, a dictionary with the keys {keys}, since it does not take them as keywords. Select its input: "
            f"predict(loader, inputs=lambda batch: batch[{keys[0] if keys else 'name'!r}])."
        )
    if isinstance(batch, np.ndarray):
        return "a NumPy array. Give it a tensor, torch.from_numpy(x), or predict(loader, inputs=torch.as_tensor)."
    if isinstance(batch, str) or (isinstance(batch, list | tuple) and any(isinstance(text, str) for text in batch)):
        return "text. Give it the tensors of its tokenizer: tokenizer(texts, padding=True, return_tensors='pt')."
    return ""


def args_of_batch(batch: Any, inputs: Callable[[Any], Any] | None, /) -> tuple[Any, ...]:
    """The arguments for a batch of a loader: the batch, or the first entry of a tuple such as (inputs, labels).

    ``inputs`` selects them from the batch instead; a tuple that it returns becomes several positional arguments.
    """
    if inputs is not None:
        selected = inputs(batch)
        return selected if isinstance(selected, tuple) else (selected,)
    return (batch[0] if isinstance(batch, list | tuple) and batch else batch,)


def input_device(call: Call, /) -> torch.device | None:
    """The device of the first tensor among the arguments."""
    return next((x.device for x in _tensors(call)), None)


def _tensors(x: Any) -> Iterator[Tensor]:
    """Every tensor in nested dictionaries, lists and tuples."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, Mapping | list | tuple):
        for value in x.values() if isinstance(x, Mapping) else x:
            yield from _tensors(value)


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
