"""The files that an ONNX file names: tensors beside the model, as exporters write large ones ("external data").

Protocol buffers are read as far as they lead to tensors; nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

VARINT, BYTES = 0, 2
FIXED: Final = {1: 8, 5: 4}  # bytes of values, by wire type
EXTERNAL_DATA: Final = 13  # the field of TensorProto
# The fields of ONNX's messages (onnx.proto) that lead to tensors, and the message that each holds.
MESSAGES: Final[dict[str, dict[int, str]]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}


def external_files(content: bytes, /) -> set[str]:
    """The locations of external data in the bytes of an ONNX file, relative to its folder; ValueError if they are none."""
    try:
        return set(_locations(memoryview(content), "model"))
    except (IndexError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not an ONNX file, or damaged: {error}") from error


def is_beside(location: str, /) -> bool:
    """Tell whether a location is in the folder of the ONNX file or below it, on every system."""
    path = PureWindowsPath(location)  # knows the separators and drives of every system
    return not (path.anchor or ".." in path.parts or not path.parts) and "\\" not in location


def _locations(message: memoryview, kind: str) -> Iterator[str]:
    for number, value in _fields(message):
        if kind == "tensor":
            if number == EXTERNAL_DATA:
                entry = dict(_fields(value))  # of key (1) and value (2)
                if bytes(entry.get(1, b"")) == b"location":
                    yield str(PurePosixPath(bytes(entry.get(2, b"")).decode()))
        elif number in MESSAGES[kind]:
            yield from _locations(value, MESSAGES[kind][number])


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a protocol buffer that hold bytes; numbers are skipped."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        size = 0
        if wire == VARINT:
            _, at = _varint(message, at)
        elif wire == BYTES:
            size, at = _varint(message, at)
        elif wire in FIXED:
            size = FIXED[wire]
        else:
            raise ValueError(f"a field of wire type {wire} at byte {at}")
        if at + size > len(message):
            raise ValueError(f"it ends within a field of {size} bytes")
        if wire == BYTES:
            yield key >> 3, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while message[at] & 128:
        value |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1
