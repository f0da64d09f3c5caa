"""What may be a member: modules, callables, one stochastic module; and which options go together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from torch import nn

from credalens.torch.calling import Function

if TYPE_CHECKING:
    from credalens.torch.wrapper import CredalWrapper

__all__ = ["check_options", "member_name", "read_members"]


def read_members(members: Iterable[Callable[..., Any]] | Callable[..., Any], samples: int | None, /) -> nn.ModuleList:
    """The members as a list of modules; a callable that is no module is put into one."""
    if _is_single(members):
        if samples is None:
            raise ValueError(
                f"one {type(members).__name__} is one prediction: pass samples=50 if it is stochastic (dropout, a Bayesian "
                "network), or a list of members."
            )
        members = [members]  # type: ignore[list-item]
    if not isinstance(members, Iterable) or isinstance(members, str | Mapping):
        raise TypeError(f"members must be modules or callables in a list; got {type(members).__name__}.")
    found = nn.ModuleList([_as_module(member, n) for n, member in enumerate(members)])
    if not found:
        raise ValueError("a CredalWrapper needs at least one member; got none.")
    return found


def _is_single(members: Any) -> bool:
    if isinstance(members, nn.Module):
        return not isinstance(members, nn.ModuleList)
    return callable(members) and not isinstance(members, Iterable)


def _as_module(member: Any, n: int) -> nn.Module:
    if isinstance(member, type) or not callable(member):
        what = f"the class {member.__name__}, not an instance of it" if isinstance(member, type) else repr(member)
        raise TypeError(f"member {n} must be a module or another callable; got {what}.")
    return member if isinstance(member, nn.Module) else Function(member)


def member_name(n: int, member: nn.Module, /) -> str:
    """How errors call a member."""
    return f"member {n} ({member.extra_repr() if isinstance(member, Function) else type(member).__name__})"


def check_options(wrapper: CredalWrapper, /) -> None:
    """Refuse options that contradict each other."""
    if wrapper.vectorised and wrapper.samples is not None:
        raise ValueError("vectorised=True runs several members once each; with samples= use vectorised=False.")
    if wrapper.vectorised and wrapper.gradients:
        raise ValueError("a vectorised pass works on copies, which gradients do not leave; use vectorised=False.")
    if wrapper.member_chunk is not None and not wrapper.vectorised:
        raise ValueError(
            "member_chunk limits a vectorised pass; without vectorised=True members run one by one anyway."
        )
