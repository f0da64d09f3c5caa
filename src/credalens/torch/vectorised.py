"""Members of one architecture as a single vectorised pass: ``torch.func.stack_module_state`` and ``vmap``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from credalens.torch.calling import Call, Function, resolved

__all__ = ["check_same_architecture", "stacked_bytes", "vectorised_pass"]

NO_SETTINGS = ("training", "name_or_path")  # checked when it runs; where a Hugging Face model was loaded from
PLAIN = (bool, int, float, str, tuple, type(None), torch.dtype)


def vectorised_pass(members: Sequence[nn.Module], call: Call, read: Callable[[Any], Tensor], /) -> Tensor:
    """The outputs of all members, (members, *batch, classes), each read from what a member returns by ``read``.

    Memory: a stacked copy of all weights (``stacked_bytes``), made anew for every call so that it is never stale, and
    the activations of all members at once. The first member lends its code and must not run elsewhere meanwhile.
    """
    _check_one_mode(members)
    weights, buffers = torch.func.stack_module_state(list(members))
    args, kwargs = resolved(members[0], call)

    def one(weights: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return read(torch.func.functional_call(members[0], (weights, buffers), args, kwargs))

    return torch.vmap(one)(weights, buffers)


def stacked_bytes(members: Sequence[nn.Module], /) -> int:
    """Bytes that the stacked copy of these members' parameters and buffers takes."""
    return sum(x.nbytes for member in members for x in _tensors(member).values())


def check_same_architecture(members: Sequence[nn.Module], /) -> None:
    """Refuse members that one vectorised pass would not reproduce: layers, settings and shapes must be the same.

    Settings are compared where they are plain values (numbers, text, functions); what else a member's layers hold
    besides parameters and buffers is taken from the first member.
    """
    for n, member in enumerate(members):
        if isinstance(member, Function):
            _refuse(n, "is a plain callable, whose weights cannot be stacked")
        _check_layers(n, members[0], member)
        _check_tensors(n, members[0], member)


def _check_one_mode(members: Sequence[nn.Module]) -> None:
    for n, member in enumerate(members):
        if member.training != members[0].training:
            raise ValueError(
                f"a vectorised pass needs all members in one mode; training is {member.training} for member {n} and "
                f"{members[0].training} for member 0. Call .eval() on the wrapper."
            )


def _check_layers(n: int, first: nn.Module, member: nn.Module) -> None:
    theirs, ours = dict(first.named_modules()), dict(member.named_modules())
    if [(name, type(layer)) for name, layer in theirs.items()] != [(name, type(layer)) for name, layer in ours.items()]:
        _refuse(n, "has other layers than member 0")
    for name, layer in ours.items():
        before, now = _settings(theirs[name]), _settings(layer)
        for key in sorted(before.keys() | now.keys()):
            if not _same(before.get(key), now.get(key)):
                where = f"{name}.{key}" if name else key
                _refuse(n, f"has {where}={now.get(key)!r} where member 0 has {before.get(key)!r}")


def _check_tensors(n: int, first: nn.Module, member: nn.Module) -> None:
    theirs, ours = _tensors(first), _tensors(member)
    for name in sorted(theirs.keys() | ours.keys()):
        before, now = _form(theirs.get(name)), _form(ours.get(name))
        if before != now:
            _refuse(n, f"has {name} of {now} where member 0 has {before}")


def _settings(layer: nn.Module) -> dict[str, Any]:
    values = {name: value for name, value in vars(layer).items() if name[0] != "_" and name not in NO_SETTINGS}
    return {name: value for name, value in values.items() if isinstance(value, PLAIN) or callable(value)}


def _same(one: Any, other: Any) -> bool:
    """Equal, or two functions made by the same line of code that hold nothing of their own."""
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return one is other or (one.__code__ is other.__code__ and not (one.__closure__ or other.__closure__))
    return bool(one == other)


def _tensors(member: nn.Module) -> dict[str, Tensor]:
    return dict(member.named_parameters()) | dict(member.named_buffers())


def _form(x: Tensor | None) -> str:
    return "nothing" if x is None else f"shape {tuple(x.shape)}, {x.dtype} on {x.device}"


def _refuse(n: int, why: str) -> NoReturn:
    raise ValueError(
        f"vectorised=True needs members of identical architecture; member {n} {why}. "
        "Use vectorised=False, which takes any members."
    )
