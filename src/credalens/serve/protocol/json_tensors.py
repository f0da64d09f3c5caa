"""Tensors as JSON: lists of numbers, truth values or words, flat or nested, in row-major order."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.serve.protocol.datatypes import BYTES, DTYPES, datatype_of
from credalens.serve.protocol.errors import RequestError

READ_FROM: Final = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}  # kind of a dtype -> kinds of the numbers of its JSON


def tensor_from_json(data: Any, name: str, datatype: str, shape: tuple[int, ...], /) -> NDArray:
    """The tensor of an input whose ``data`` came as JSON."""
    values = _array(data, name, datatype)
    if values.size != math.prod(shape):
        raise RequestError(
            f"input {name!r}: shape {list(shape)} needs {count_text(math.prod(shape), 'value')}; got {values.size}."
        )
    return values.reshape(shape)


def _array(data: Any, name: str, datatype: str) -> NDArray:
    if not isinstance(data, list):
        raise RequestError(f"input {name!r}: data must be a list; got {type(data).__name__}.")
    if datatype == BYTES:
        return _words(data, name)
    try:
        values = np.asarray(data)
    except ValueError as error:
        raise RequestError(f"input {name!r}: data do not form a rectangular array ({error}).") from error
    dtype = DTYPES[datatype]
    if values.dtype.kind not in READ_FROM[dtype.kind]:
        raise RequestError(f"input {name!r}: data must be values of {datatype}; got {values.dtype}.")
    return _cast(values, dtype, name)


def _words(data: list[Any], name: str) -> NDArray:
    values = np.asarray(data, dtype=object)
    if not all(isinstance(value, str) for value in values.flat):
        raise RequestError(f"input {name!r}: data of BYTES must be strings.")
    return values


def _cast(values: NDArray, dtype: np.dtype, name: str) -> NDArray:
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    lost = np.isinf(cast) & np.isfinite(values) if dtype.kind == "f" else cast != values
    if lost.any():
        place = int(lost.argmax())
        raise RequestError(f"input {name!r}: value {values.flat[place]!r} at {place} does not fit into {dtype}.")
    return cast


def described(array: NDArray, name: str, /) -> dict[str, Any]:
    """Name, datatype and shape of an output."""
    return {"name": name, "datatype": datatype_of(array), "shape": list(array.shape)}
