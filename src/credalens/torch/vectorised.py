"""Members of one architecture as a single vectorised pass: ``torch.func.stack_module_state`` and ``vmap``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from credalens.torch.calling import Call, CallableModule, member_call

NO_SETTINGS = ("training", "name_or_path")  # checked at every call; where a Hugging Face model was loaded from
PLAIN = (bool, int, float, str, tuple, type(None), torch.dtype)


def vectorised_pass(members: Sequence[nn.Module], call: Call, read: Callable[[Any], Tensor], /) -> Tensor:
    """The outputs of all members, (members, *batch, classes); ``read`` takes the tensor from what a member returns.

    Memory: a stacked copy of all weights (``stacked_bytes``), made at every call so that it is never stale, and the
    activations of all members at once. The code of the first member runs, which must not run elsewhere meanwhile.
    """
    _check_same_mode(members)
    weights, buffers = torch.func.stack_module_state(list(members))
    args, kwargs = member_call(members[0], call)

    def run_member(weights: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return read(torch.func.functional_call(members[0], (weights, buffers), args, kwargs))

    return torch.vmap(run_member)(weights, buffers)


def stacked_bytes(members: Sequence[nn.Module], /) -> int:
    """Bytes that the stacked copy of these members' parameters and buffers takes."""
    return sum(tensor.nbytes for member in members for tensor in (*member.parameters(), *member.buffers()))


def _check_same_mode(members: Sequence[nn.Module]) -> None:
    for n, member in enumerate(members):
        if member.training != members[0].training:
            raise ValueError(
                f"a vectorised pass needs all members in one mode; training is {member.training} for member {n} and "
                f"{members[0].training} for member 0. Call .eval() on the wrapper."
            )


def check_same_architecture(members: Sequence[nn.Module], /) -> None:
    """Refuse members that a vectorised pass would not reproduce: layers, settings and shapes must be the same.

    Settings are compared where they are plain values (numbers, text, functions). Anything else that layers hold, besides
    parameters and buffers, is taken from the first member.
    """
    for n, member in enumerate(members):
        if isinstance(member, CallableModule):
            _refuse(n, "is a plain callable, whose weights cannot be stacked")
    first = _architecture(members[0])
    for n, member in enumerate(members[1:], start=1):
        architecture = _architecture(member)
        for key in first | architecture:
            expected, value = first.get(key), architecture.get(key)
            if not _is_same(expected, value):
                _refuse(n, f"has {key}={value!r} where member 0 has {expected!r}")


def _architecture(member: nn.Module) -> dict[str, Any]:
    """The type of every layer, then the settings of every layer, then the form of every tensor."""
    layers = dict(member.named_modules())
    types = {f"layer {name!r}": type(layer) for name, layer in layers.items()}
    settings = {
        f"{name}.{setting}".removeprefix("."): value
        for name, layer in layers.items()
        for setting, value in vars(layer).items()
        if setting[0] != "_" and setting not in NO_SETTINGS and (isinstance(value, PLAIN) or callable(value))
    }
    tensors = dict(member.named_parameters()) | dict(member.named_buffers())
    forms = {name: (tuple(x.shape), x.dtype, str(x.device)) for name, x in tensors.items()}
    return types | settings | forms


def _is_same(value: Any, other: Any) -> bool:
    """Whether two settings are equal. Functions made by the same line of code are, unless they hold variables."""
    if isinstance(value, FunctionType) and isinstance(other, FunctionType):
        return value is other or (value.__code__ is other.__code__ and not (value.__closure__ or other.__closure__))
    return bool(value == other)


def _refuse(n: int, why: str) -> NoReturn:
    raise ValueError(
        f"vectorised=True needs members of identical architecture; member {n} {why}. "
        "Use vectorised=False, which takes any members."
    )
