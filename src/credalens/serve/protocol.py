"""The Open Inference Protocol v2: requests, their errors, and tensors as JSON or as binary data.

Binary data follow the JSON of a body: little-endian values in row-major order, each element of BYTES behind its length in
four bytes.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text

HEADER_LENGTH: Final = "Inference-Header-Content-Length"
MOST_AXES: Final = 32
MOST_TENSORS: Final = 256
LONGEST_NAME: Final = 256
BYTES: Final = "BYTES"
DTYPES: Final = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    BYTES: np.dtype(object),
}
"""The datatypes of the protocol."""
FLOATS: Final = ("FP32", "FP64", "FP16")
DATATYPES: Final = {dtype: name for name, dtype in DTYPES.items()}
READ_FROM: Final = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}  # kind of a dtype -> kinds of the numbers of its JSON


class RequestError(Exception):
    """A request that is answered with ``{"error": message}``: raise it in a model that has something to tell its clients.

    :ivar status: of HTTP, from 400 on.

    >>> def members(x):
    ...     if (x < 0).any():
    ...         raise RequestError("x must be positive; it is in metres.")
    """

    def __init__(self, message: str, /, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class WantedOutput:
    """An output that a request asks for, and whether as binary data."""

    name: str
    binary: bool


@dataclass(frozen=True, eq=False)
class InferRequest:
    """A request to infer.

    :ivar outputs: None where the request names none.
    :ivar binary: whether outputs that are not named come as binary data.
    """

    id: str | None
    inputs: dict[str, NDArray]
    outputs: tuple[WantedOutput, ...] | None
    binary: bool


def read_request(body: bytes, header_length: str | None, /) -> InferRequest:
    """Read a body. ``header_length`` is the header that says how many bytes of it are JSON; all of them without it."""
    length, text = len(body), header_length
    if text is not None:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= length):
            raise RequestError(
                f"{HEADER_LENGTH} must be a number of bytes up to those of the body, {length}; got {text!r:.40}."
            )
        length = int(text)
    try:
        content = json.loads(body[:length])
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is not JSON ({error!s:.200}).") from error
    fields = _object(content, "the request")
    binary = _flag(_parameters(fields, "the request"), "binary_data_output", False)
    inputs = _read_inputs(_list(fields, "inputs"), memoryview(body)[length:])
    outputs: dict[str, WantedOutput] = {}
    for item in _list(fields, "outputs") if "outputs" in fields else ():
        name = _name(item, "an output", outputs)
        outputs[name] = WantedOutput(name, _flag(_parameters(item, f"output {name!r}"), "binary_data", binary))
    own = fields.get("id")
    if own is not None and not (isinstance(own, str) and len(own) <= LONGEST_NAME):
        raise RequestError(f"id must be a string of at most {LONGEST_NAME} characters.")
    return InferRequest(own, inputs, tuple(outputs.values()) or None, binary)


def _read_inputs(items: list[Any], tail: memoryview) -> dict[str, NDArray]:
    """Read the tensors by name; their binary data follow one another in ``tail``."""
    inputs, start = dict[str, NDArray](), 0
    for item in items:
        name = _name(item, "an input", inputs)
        try:
            inputs[name], size = _read_tensor(item, f"input {name!r}", tail[start:])
        except ValueError as error:
            raise RequestError(f"input {name!r}: {error}") from error
        start += size
    if start != len(tail):
        there = count_text(len(tail), "byte")
        raise RequestError(f"the body holds {there} of binary data; the inputs account for {start}.")
    return inputs


def _read_tensor(item: dict[str, Any], what: str, tail: memoryview) -> tuple[NDArray, int]:
    """Read a tensor; returns how many bytes of ``tail`` it took as well. A ValueError says what is wrong with it."""
    datatype, shape = item.get("datatype"), item.get("shape")
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise ValueError(f"datatype must be one of {', '.join(DTYPES)}; got {datatype!r:.60}.")
    if not isinstance(shape, list) or not all(_is_count(size) and size > 0 for size in shape):
        raise ValueError(f"shape must be a list of whole numbers from 1 on; got {shape!r:.60}.")
    if not 0 < len(shape) <= MOST_AXES:
        raise ValueError(f"shape must have 1 to {MOST_AXES} axes; got {len(shape)}.")
    size = _parameters(item, what).get("binary_data_size")
    if size is None:
        return tensor_from_json(item.get("data"), datatype, tuple(shape)), 0
    if "data" in item:
        raise RequestError(f"{what} has both data and binary_data_size; give one of them.")
    if not _is_count(size) or size > len(tail):
        raise ValueError(f"binary_data_size is {size!r:.40}, with {count_text(len(tail), 'byte')} left.")
    return tensor_from_bytes(tail[:size], datatype, tuple(shape)), size


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _name(item: Any, what: str, earlier: dict[str, Any]) -> str:
    """Read the name of an input or an output, each of which is named once."""
    name = _object(item, what).get("name")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise RequestError(f"{what} needs a name, a string of at most {LONGEST_NAME} characters.")
    if name in earlier:
        raise RequestError(f"{what} {name!r} is named twice.")
    return name


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RequestError(f"{what} must be a JSON object; got {type(value).__name__}.")
    return value


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    if isinstance(value, list) and len(value) <= MOST_TENSORS:
        return value
    got = f"{len(value)} of them" if isinstance(value, list) else "nothing" if value is None else type(value).__name__
    raise RequestError(f"{name} must be a list of at most {MOST_TENSORS} objects; got {got}.")


def _parameters(fields: dict[str, Any], what: str) -> dict[str, Any]:
    parameters = _object(fields.get("parameters", {}), f"parameters of {what}")
    for name in ("shared_memory_region", "classification"):
        if name in parameters:
            raise RequestError(f"{what}: the parameter {name!r} is not supported here.")
    return parameters


def _flag(parameters: dict[str, Any], name: str, default: bool) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise RequestError(f"the parameter {name} must be true or false.")
    return value


def datatype_of(array: NDArray, /) -> str:
    """The datatype of an array; words are BYTES."""
    return BYTES if array.dtype.kind in "UOS" else DATATYPES[array.dtype]


def tensor_from_json(data: Any, datatype: str, shape: tuple[int, ...], /) -> NDArray:
    """Make a tensor of JSON: numbers, truth values or words, in a flat list or a nested one."""
    if not isinstance(data, list):
        raise ValueError(f"data must be a list; got {type(data).__name__}.")
    if datatype == BYTES:
        values = np.asarray(data, dtype=object)
        if not all(isinstance(value, str) for value in values.flat):
            raise ValueError("data of BYTES must be strings.")
    else:
        values = _numbers_from_json(data, datatype)
    if values.size != math.prod(shape):
        raise ValueError(f"shape {list(shape)} needs {count_text(math.prod(shape), 'value')}; got {values.size}.")
    return values.reshape(shape)


def _numbers_from_json(data: list[Any], datatype: str) -> NDArray:
    try:
        values = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"data do not form a rectangular array ({error}).") from error
    dtype = DTYPES[datatype]
    if values.dtype.kind not in READ_FROM[dtype.kind]:
        raise ValueError(f"data must be values of {datatype}; got {values.dtype}.")
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    lost = np.isinf(cast) & np.isfinite(values) if dtype.kind == "f" else cast != values
    if lost.any():
        place = int(lost.argmax())
        raise ValueError(f"value {values.flat[place]!r} at {place} does not fit into {dtype}.")
    return cast


def tensor_from_bytes(raw: memoryview, datatype: str, shape: tuple[int, ...], /) -> NDArray:
    """Make a tensor of binary data: a copy, since kernels want aligned memory that may be written."""
    count, dtype = math.prod(shape), DTYPES[datatype]
    if datatype == BYTES:
        values = np.empty(count, object)
        values[:] = _words_from_bytes(raw, count)
        return values.reshape(shape)
    if len(raw) != count * dtype.itemsize:
        expected = count_text(count * dtype.itemsize, "byte")
        raise ValueError(f"shape {list(shape)} of {datatype} takes {expected}; binary_data_size is {len(raw)}.")
    if datatype == "BOOL" and (np.frombuffer(raw, np.uint8) > 1).any():
        raise ValueError("a byte of BOOL must be 0 or 1.")
    return np.frombuffer(raw, dtype).reshape(shape).copy()


def _words_from_bytes(raw: memoryview, count: int) -> list[str]:
    words, start = [], 0
    while start < len(raw):
        end = start + 4
        end += struct.unpack("<I", raw[start:end])[0] if end <= len(raw) else 1
        if end > len(raw):
            raise ValueError("the binary data end inside an element of BYTES.")
        try:
            words.append(str(raw[start + 4 : end], "utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"an element of BYTES is not UTF-8 ({error}).") from error
        start = end
    if len(words) != count:
        raise ValueError(f"its shape needs {count_text(count, 'element')}; the binary data hold {len(words)}.")
    return words


def tensor_to_bytes(array: NDArray, /) -> bytes:
    """The values of a tensor as binary data."""
    if datatype_of(array) != BYTES:
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    words = [str(word).encode() for word in array.flat]
    return b"".join(struct.pack("<I", len(word)) + word for word in words)
