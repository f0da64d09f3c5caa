"""Tensors as binary data: little-endian values in row-major order; BYTES with the length of each in four bytes before it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.serve.protocol.datatypes import BYTES, DTYPES, datatype_of
from credalens.serve.protocol.errors import RequestError


def tensor_from_bytes(raw: memoryview, name: str, datatype: str, shape: tuple[int, ...], /) -> NDArray:
    """The tensor of an input whose data came as bytes: a copy, since kernels want aligned memory that may be written."""
    count = math.prod(shape)
    if datatype == BYTES:
        return _words(raw, name, count).reshape(shape)
    dtype = DTYPES[datatype]
    if len(raw) != count * dtype.itemsize:
        expected = f"shape {list(shape)} of {datatype} takes {count_text(count * dtype.itemsize, 'byte')}"
        raise RequestError(f"input {name!r}: {expected}; binary_data_size is {len(raw)}.")
    if datatype == "BOOL" and (np.frombuffer(raw, np.uint8) > 1).any():
        raise RequestError(f"input {name!r}: a byte of BOOL must be 0 or 1.")
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def _words(raw: memoryview, name: str, count: int) -> NDArray:
    words = list(_each_word(raw, name))
    if len(words) != count:
        raise RequestError(
            f"input {name!r}: its shape needs {count_text(count, 'element')}; the binary data hold {len(words)}."
        )
    values = np.empty(count, object)
    values[:] = words
    return values


def _each_word(raw: memoryview, name: str) -> Iterator[str]:
    start = 0
    while start < len(raw):
        end = start + 4
        end += struct.unpack("<I", raw[start:end])[0] if end <= len(raw) else 1
        if end > len(raw):
            raise RequestError(f"input {name!r}: the binary data end inside an element of BYTES.")
        try:
            yield str(raw[start + 4 : end], "utf-8")
        except UnicodeDecodeError as error:
            raise RequestError(f"input {name!r}: an element of BYTES is not UTF-8 ({error}).") from error
        start = end


def tensor_to_bytes(array: NDArray, /) -> bytes:
    """The values as the protocol sends them."""
    if datatype_of(array) != BYTES:
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    words = [str(word).encode() for word in array.flat]
    return b"".join(struct.pack("<I", len(word)) + word for word in words)
