"""The arrays of .safetensors files: a length, a JSON header, plain memory. Read and written without the package.

The format has no checksum. Its arrays must fill the file without a gap, but a changed value is not noticed.
"""

from __future__ import annotations

import json
import math
import struct
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from credalens.storage.formats.files import UnsuitableError
from credalens.storage.formats.stored_array import BFLOAT16, Stored, mapped

LENGTH = struct.Struct("<Q")
LONGEST_HEADER = 100_000_000  # the format's own limit
DTYPES = {
    "F16": "<f2",
    "BF16": "<u2",
    "F32": "<f4",
    "F64": "<f8",
    "I8": "|i1",
    "U8": "|u1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "BOOL": "|b1",
}
NAMES = {dtype: name for name, dtype in DTYPES.items() if name != "BF16"}


def safetensors_arrays(path: Path, /) -> dict[str, Stored]:
    """The arrays of a .safetensors file by name."""
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = LENGTH.unpack(file.read(LENGTH.size))
        if length > min(LONGEST_HEADER, size - LENGTH.size):
            raise ValueError(f"its header should have {length} bytes")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise TypeError(f"its header is a JSON {type(header).__name__}, not an object")
    header.pop("__metadata__", None)
    start = LENGTH.size + length
    _check_filled([_sizes(entry["data_offsets"]) for entry in header.values()], size - start)
    return {name: _array(path, start, entry) for name, entry in header.items()}


def _check_filled(offsets: list[tuple[int, ...]], size: int) -> None:
    """The arrays lie one after the other, from the first byte after the header to the last."""
    edges = [0, *chain.from_iterable(sorted(offsets)), size]
    if edges[::2] != edges[1::2]:
        raise ValueError(f"its arrays do not fill the {size} bytes after the header")


def _array(path: Path, start: int, entry: dict) -> Stored:
    if entry["dtype"] not in DTYPES:
        raise UnsuitableError(f"holds values of dtype {entry['dtype']}; use one of {', '.join(DTYPES)}.")
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), _sizes(entry["shape"])
    begin, end = entry["data_offsets"]
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"shape {shape} of {entry['dtype']} does not fit bytes {begin} to {end}")
    return mapped(path, start + begin, dtype, shape, name=BFLOAT16 if entry["dtype"] == "BF16" else "")


def _sizes(values: Any) -> tuple[int, ...]:
    if not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"{values} should be integers of at least 0")
    return tuple(values)


def write_safetensors(file: BinaryIO, arrays: dict[str, NDArray], /) -> None:
    """Write named arrays; the header is padded so that the values are aligned for a map."""
    little = {name: np.ascontiguousarray(x, x.dtype.newbyteorder("<")) for name, x in arrays.items()}
    ends = np.cumsum([x.nbytes for x in little.values()]).tolist()
    header = {
        name: {"dtype": NAMES[x.dtype.str], "shape": x.shape, "data_offsets": [end - x.nbytes, end]}
        for (name, x), end in zip(little.items(), ends, strict=True)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % LENGTH.size)
    file.write(LENGTH.pack(len(text)) + text)
    for x in little.values():
        file.write(x.data)
