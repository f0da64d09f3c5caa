"""A digest of nested values, equal in every process exactly where the values are equal.

A value is encoded as its type, its bytes and its parts, each with its length before it, so that no two values share an
encoding. What holds something that this module cannot read is refused, never left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

VERSION: Final = 2  # of the encoding: digests of different versions are never equal
SCALARS: Final[Mapping[type, Callable[[Any], bytes]]] = {
    type(None): lambda x: b"",
    bool: lambda x: b"1" if x else b"0",
    int: lambda x: hex(x).encode(),  # repr has a limit of digits
    float: lambda x: x.hex().encode(),
    complex: lambda x: f"{x.real.hex()} {x.imag.hex()}".encode(),
    str: lambda x: x.encode("utf-8", "surrogatepass"),
    bytes: lambda x: x,
}


class _Content(NamedTuple):
    """The bytes of a value itself, and the values in it, each with how an error names it."""

    buffers: tuple[Any, ...] = ()
    parts: tuple[tuple[str, Any], ...] = ()


def digest(x: Any, /, name: str = "the value") -> str:
    """A short text that differs where any type, number, text, name, shape or order in nested values differs.

    Reads tensors, arrays, numbers, texts, enumerations, lists, tuples, dataclasses with all their attributes, and mappings,
    which are their items in their order. How a tensor lies in memory, and on which device, does not count.

    >>> digest({"x": [1, 23]}) == digest({"x": [12, 3]})
    False
    """
    state = hashlib.blake2b(digest_size=16)
    _feed(state, x, name)
    return state.hexdigest()


def _feed(state: Any, x: Any, name: str) -> None:
    content = _content(x)
    if content is None:
        raise TypeError(f"{name}, of type {_type_name(x)}, cannot be digested, so a change in it would not be noticed.")
    for buffer in (_type_name(x).encode(), *content.buffers):
        state.update(_length(memoryview(buffer).nbytes))
        state.update(buffer)
    state.update(_length(len(content.parts)))
    for where, part in content.parts:
        _feed(state, part, name + where)


def _length(count: int) -> bytes:
    return count.to_bytes(8, "little")


def _type_name(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}"


def _content(x: Any) -> _Content | None:
    """What ``x`` is made of; None where that is not known, as for subclasses of numbers and texts, which may hold more."""
    if type(x) in SCALARS:
        return _Content((SCALARS[type(x)](x),))
    if isinstance(x, Tensor):
        return _tensor_content(x)
    if isinstance(x, np.generic) or type(x) in (np.ndarray, np.memmap):
        return None if x.dtype.hasobject else _Content((f"{x.shape} {x.dtype}".encode(), x.tobytes()))
    if isinstance(x, Enum):
        return _Content(parts=((".value", x.value),))
    if isinstance(x, Mapping):
        return _Content(parts=tuple(part for item in x.items() for part in _named(f"[{item[0]!r}]", *item)))
    if isinstance(x, list | tuple):
        items = tuple((f"[{n}]", value) for n, value in enumerate(x))
        return _Content((_length(len(items)),), items + _attributes(x))
    return _Content(parts=_attributes(x)) if is_dataclass(x) and not isinstance(x, type) else None


def _tensor_content(x: Tensor) -> _Content | None:
    if x.layout != torch.strided or x.is_quantized or x.is_nested or x.is_meta:
        return None
    plain = x.detach().as_subclass(Tensor).cpu().resolve_conj().resolve_neg().contiguous()
    row = plain.as_strided((plain.numel(),), (1,))  # reshape keeps a stride of zero, which cannot be viewed as bytes
    return _Content((f"{tuple(x.shape)} {x.dtype}".encode(), row.view(torch.uint8).numpy()), _attributes(x))


def _attributes(x: Any) -> tuple[tuple[str, Any], ...]:
    """The names and values of what is set on an object, in its dictionary and its slots."""
    state = object.__getstate__(x)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    merged = {**(attributes or {}), **(slots or {})}
    return tuple(part for name in sorted(merged) for part in _named(f".{name}", name, merged[name]))


def _named(where: str, name: Any, value: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return (f"{where} as a name", name), (where, value)
