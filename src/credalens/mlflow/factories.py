"""The functions that a saved model may call: marked by their author, in modules that the caller imported or named."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from inspect import getattr_static
from typing import Any, Final, TypeVar

MARK: Final = "__builds_credal_members__"
NAMED: Final = "CREDALENS_FACTORIES"
Factory = TypeVar("Factory", bound=Callable[..., Any])


def member_factory(function: Factory, /) -> Factory:
    """Mark a function of an importable module that builds one member, a ``torch.nn.Module`` with any weights.

    A saved model contains the name of its factory, and loading the model calls that function. Functions that are not marked
    are never called and modules that you have not imported are not imported, so that a model from somebody else runs no other
    code of yours.

    >>> @member_factory
    ... def small(width=8):
    ...     return nn.Linear(4, width)
    """
    setattr(function, MARK, True)
    return function


def find_factory(path: str, /, *, by_caller: bool) -> Callable[..., Any]:
    """Find the marked function "module:function" that the caller, or only a saved model, names.

    For a name from a saved model nothing is imported: its module must have been imported before, or the environment variable
    ``CREDALENS_FACTORIES``, a list with commas, name the function.
    """
    module, _, name = path.partition(":")
    if not (module and name.isidentifier()):
        raise ValueError(f"factory must read 'module:function', where the function builds one member; got {path!r}.")
    if by_caller or path in os.environ.get(NAMED, "").replace(" ", "").split(","):
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"the factory {path!r} cannot be imported ({error}); the process that loads the model needs it as well."
            ) from error
    elif (imported := sys.modules.get(module)) is not None:
        function = vars(imported).get(name)
    else:
        raise ValueError(
            f"the saved model is built by {path!r}, whose module is not imported, and a saved model imports none by itself. If "
            f"you trust that module, import it before you load the model, or set {NAMED}={path} in the environment."
        )
    if getattr_static(function, MARK, False) is not True:
        raise ValueError(
            f"{path!r} is not marked as a factory, and a saved model may call nothing else; write "
            "@credalens.mlflow.member_factory above the function that builds one member."
        )
    return function
