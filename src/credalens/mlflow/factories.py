"""The functions that a saved model may call: those that their author marked, in modules that the caller imported or named."""

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


def import_factory(path: str, /) -> Callable[..., Any]:
    """Import the marked function of "module:function". Only for names from the caller, since code of the module runs."""
    module, name = _parse(path)
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"the factory {path!r} cannot be imported ({error}); the process that loads the model needs it as well."
        ) from error
    return _marked(function, path)


def factory_of_model(path: str, /) -> Callable[..., Any]:
    """Look up the marked function that a saved model names, and import nothing for it.

    Its module must have been imported, or the environment variable ``CREDALENS_FACTORIES``, a list with commas, name it.
    """
    module, name = _parse(path)
    if path in os.environ.get(NAMED, "").replace(" ", "").split(","):
        return import_factory(path)
    if (imported := sys.modules.get(module)) is None:
        raise ValueError(
            f"the saved model is built by {path!r}, whose module is not imported, and a saved model imports none by itself. If "
            f"you trust that module, import it before you load the model, or set {NAMED}={path} in the environment."
        )
    return _marked(vars(imported).get(name), path)


def _parse(path: str) -> tuple[str, str]:
    module, _, name = path.partition(":")
    if not (module and name.isidentifier()):
        raise ValueError(f"factory must read 'module:function', where the function builds one member; got {path!r}.")
    return module, name


def _marked(function: Any, path: str) -> Callable[..., Any]:
    if getattr_static(function, MARK, False) is not True:
        raise ValueError(
            f"{path!r} is not marked as a factory, and a saved model may call nothing else; write "
            "@credalens.mlflow.member_factory above the function that builds one member."
        )
    return function
