"""Copies of ONNX files together with their external data: tensors in files beside the model, as exporters write large ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
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


def copy_onnx(source: str | os.PathLike[str], target: Path, /) -> None:
    """Copy an ONNX file, and the files of its external data to where it will look for them."""
    source = Path(source)
    target.parent.mkdir(parents=True)
    shutil.copyfile(source, target)
    for location in sorted(external_files(source)):
        copied = target.parent / location
        if not _is_beside(location) or copied.exists():
            raise ValueError(
                f"{source}: its external data are in {location!r}. A model is saved with data in the folder of the ONNX file "
                f"or below it, in files that are not named {target.name!r}."
            )
        if not (source.parent / location).is_file():
            raise FileNotFoundError(
                2, f"No such file, the external data of {source.name}", str(source.parent / location)
            )
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / location, copied)


def external_files(path: Path, /) -> set[str]:
    """The locations of external data in an ONNX file, relative to its folder."""
    try:
        return set(_locations(memoryview(path.read_bytes()), "model"))
    except (IndexError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not an ONNX file, or damaged: {error}") from error


def _is_beside(location: str) -> bool:
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
