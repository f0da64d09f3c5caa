"""The functions that a saved model may call: those that their author marked."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

MARK: Final = "__builds_credal_members__"
Factory = TypeVar("Factory", bound=Callable[..., Any])


def member_factory(function: Factory, /) -> Factory:
    """Mark a function of an importable module that builds one member, a ``torch.nn.Module`` with any weights.

    A saved model contains the name of its factory, and loading the model calls that function. Functions that are not marked
    are never called, so that a model from somebody else cannot run other code of yours.

    >>> @member_factory
    ... def small(width=8):
    ...     return nn.Linear(4, width)
    """
    setattr(function, MARK, True)
    return function


def find_factory(path: str, /) -> Callable[..., Any]:
    """The marked function of "module:function"."""
    module, _, name = path.partition(":")
    if not (module and name.isidentifier()):
        raise ValueError(f"factory must read 'module:function', where the function builds one member; got {path!r}.")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"the factory {path!r} cannot be imported ({error}); the process that loads the model needs it as well."
        ) from error
    if getattr(function, MARK, False) is not True:
        raise ValueError(
            f"{path!r} is not marked as a factory, and a saved model may call nothing else; write "
            "@credalens.mlflow.member_factory above the function that builds one member."
        )
    return function
