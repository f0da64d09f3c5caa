"""Compile sooner: Numba answers the same question about types hundreds of times, and each time from scratch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import types
from numba.core.compiler_lock import global_compiler_lock

__all__ = ["compile_sooner"]

# x[i] and the test of every condition: Numba tries some forty templates for each, a third of the time to compile.
REPEATED = (operator.getitem, bool)
_KNOWN: dict[Any, Any] = {}


@contextmanager
def _answers_kept() -> Iterator[None]:
    """Within, the type of what these functions return is worked out once for the same types of arguments.

    Numba's compiler lock is held, so that nobody else compiles meanwhile.
    """
    original = types.BaseFunction.get_call_type

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or self.typing_key not in REPEATED:
            return original(self, context, args, kws)
        question = (self, context, args)
        if question not in _KNOWN:
            _KNOWN[question] = original(self, context, args, kws)
        return _KNOWN[question]

    with global_compiler_lock:
        types.BaseFunction.get_call_type = get_call_type
        try:
            yield
        finally:
            types.BaseFunction.get_call_type = original


def compile_sooner(dispatcher: Any, /) -> Any:
    """Let an entry point compile itself, and all it calls, with answers kept."""
    original: Callable[[Any], Any] = dispatcher.compile

    def compile_it(signature: Any) -> Any:
        with _answers_kept():
            return original(signature)

    dispatcher.compile = compile_it
    return dispatcher
