"""``repr`` of results that hold arrays: each array is shown as its dtype and shape, anything else that is long by its size."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields
from typing import Any, Final

LONGEST: Final = 120  # characters of one field


def short_repr(x: Any, /) -> str:
    """The ``repr`` of a dataclass; to use it, write ``__repr__ = short_repr`` in the class."""
    shown = (f"{field.name}={_shown(getattr(x, field.name))}" for field in fields(x) if field.repr)
    return f"{type(x).__name__}({', '.join(shown)})"


def _shown(value: Any) -> str:
    kind, shape, dtype = type(value).__name__, getattr(value, "shape", ()), getattr(value, "dtype", None)
    if shape != () and dtype is not None:
        return f"{str(dtype).rpartition('.')[2]}[{', '.join(map(str, shape))}]"
    text = repr(value)
    if len(text) <= LONGEST:
        return text
    return f"{kind} of {len(value)}" if isinstance(value, Sized) else f"{kind}(...)"
