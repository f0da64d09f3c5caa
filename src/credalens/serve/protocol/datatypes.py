"""Datatypes of the protocol and their NumPy dtypes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.serve.protocol.errors import RequestError

BYTES: Final = "BYTES"
DTYPES: Final = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
    BYTES: np.dtype(object),
}
FLOATS: Final = ("FP32", "FP64", "FP16")
NAMES: Final = {dtype: name for name, dtype in DTYPES.items()}


def datatype_of(array: NDArray, /) -> str:
    """The protocol's name for what an array holds; words are BYTES."""
    return BYTES if array.dtype.kind in "UOS" else NAMES[array.dtype]


def check_datatype(value: Any, name: str, /) -> str:
    """A datatype of the protocol that is understood here."""
    if not isinstance(value, str) or value not in DTYPES:
        raise RequestError(f"input {name!r}: datatype must be one of {', '.join(DTYPES)}; got {value!r:.60}.")
    return value
