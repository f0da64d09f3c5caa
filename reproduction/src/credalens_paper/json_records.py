"""Frozen dataclasses as JSON and back: the fields are declared once, and code reads attributes.

A field is written under its own name, or under the one that `named` gives. `optional` fields are left out where they
are None. An `inline` field is a record whose fields stand among those of its owner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def optional(name: str | None = None, /) -> Any:
    """A field that is left out where it is None."""
    return field(default=None, metadata={"optional": True} | ({"name": name} if name else {}))


def inline() -> Any:
    """A record, or None, whose fields stand among those of its owner."""
    return field(default=None, metadata={"inline": True})


def named(name: str, /) -> Any:
    """A field that has another name in JSON."""
    return field(metadata={"name": name})


def to_json(value: Any, /) -> Any:
    """Plain dictionaries, lists and numbers."""
    if is_dataclass(value):
        written: dict[str, Any] = {}
        for one in fields(value):
            content = getattr(value, one.name)
            if content is not None or not {"optional", "inline"} & one.metadata.keys():
                written |= to_json(content) if "inline" in one.metadata else {_name(one): to_json(content)}
        return written
    if isinstance(value, Mapping):
        return {key: to_json(content) for key, content in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_json(content) for content in value]
    return value


def from_json(kind: type[Record], content: Any, /) -> Record:
    """The record of this kind that `to_json` wrote; fields that it does not have are ignored."""
    read: Any = _read(kind, content)
    return read


def _read(kind: Any, content: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        hints, values = _hints(kind), dict[str, Any]()
        for one in fields(kind):
            if "inline" not in one.metadata and _name(one) in content:
                values[one.name] = _read(hints[one.name], content[_name(one)])
            elif "inline" in one.metadata and _name(fields(get_args(hints[one.name])[0])[0]) in content:
                values[one.name] = _read(hints[one.name], content)
        return kind(**values)
    arguments = get_args(kind)
    if isinstance(kind, UnionType):
        return None if content is None else _read(arguments[0], content)
    if get_origin(kind) is tuple:
        return tuple(_read(arguments[0], part) for part in content)
    if get_origin(kind) is Mapping:
        return {key: _read(arguments[1], part) for key, part in content.items()}
    return content


def _name(one: Field[Any]) -> str:
    return str(one.metadata.get("name", one.name))


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)
