"""Members as modules: what users may pass as members, and how errors name each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

from torch import nn


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
