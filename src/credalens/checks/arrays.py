"""What every array must be, whatever it stands for, and errors about its values: how many, the first, what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind, array_kind_of, in_own_library, to_numpy

# How far a row of probabilities may be from summing to one. A float64 array often holds what a float32 softmax gave.
ROW_TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "float64": 1e-5}
REAL_DTYPES = ("float16", "bfloat16", "float32", "float64", "float96", "float128", "longdouble", "int", "uint", "bool")
Result = TypeVar("Result")


def as_array(
    x: Any, name: str, *, remedy: str = "Convert it to float32 or float64 first."
) -> tuple[NDArray, ArrayKind]:
    """``x`` as a numeric NumPy array, or an error that says what it was."""
    array, array_kind = _read(to_numpy, x, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype} from {type(x).__name__}. {remedy}")
    return array, array_kind


def read_array(x: Any, name: str) -> Any:
    """``x`` in its own library, or as a NumPy array if it has none; of real numbers in any case."""
    array = _read(in_own_library, x, name)
    dtype = _read(array_kind_of, array, name).dtype
    if not dtype.startswith(REAL_DTYPES):
        raise TypeError(f"{name} must hold real numbers; got dtype {dtype}. Convert it to float32 or float64 first.")
    return array


def _read(read: Callable[[Any], Result], x: Any, name: str) -> Result:
    """What ``read`` makes of ``x``, with errors that say what it was."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and masks are not understood; select the rows you want first.")
    if isinstance(x, str | bytes | os.PathLike):
        raise TypeError(
            f"{name} must be an array of numbers; got {type(x).__name__} {x!r}. If that is a file, read it first."
        )
    if isinstance(x, Iterator):
        raise TypeError(
            f"{name} must be an array of numbers; got a {type(x).__name__}. Make one of it: np.stack(list(...))."
        )
    try:
        return read(x)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a rectangular array of numbers; got {type(x).__name__} that does not form one ({error}). "
            "Give every row the same number of entries."
        ) from error
    except (TypeError, RuntimeError, BufferError) as error:  # BufferError is the array standard's
        raise TypeError(
            f"{name} must be an array of numbers; got {type(x).__name__}, whose values cannot be read ({error}). "
            "Give a dense array of values in float64, float32, float16 or bfloat16."
        ) from error


def check_classes(classes: int, name: str, shape: tuple[int, ...]) -> None:
    """At least two classes."""
    if classes < 2:
        raise ValueError(
            f"{name} needs at least two classes on its last axis; got {classes} (shape {shape}). "
            "For a binary classifier stack both columns, (1 - p, p)."
        )


def row_tolerance(dtype: str, /) -> float:
    """How far from one a row's sum may be for an array of this dtype."""
    return ROW_TOLERANCE.get(dtype, ROW_TOLERANCE["float64"])


def index_in(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where a row, counted over the whole batch, is in it; () for one without a batch."""
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def refuse_values(bad: NDArray, values: NDArray, name: str, fault: str, remedy: str) -> None:
    """Raise an error for the ``values`` that are ``bad``, if there are any."""
    if bad.any():
        where = index_in(int(bad.argmax()), bad.shape)
        raise ValueError(
            f"{int(bad.sum())} of {bad.size} {name} are {fault}, the first at index {where}: {values[where]:.6g}. {remedy}"
        )
