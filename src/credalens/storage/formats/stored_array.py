"""One array in a file: its shape and precision, and a way to read some of its rows without the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from credalens.storage.formats.files import UnsuitableError, readable

BFLOAT16 = "bfloat16"
MAPPED, STREAMED, LOADED = "memory-mapped", "streamed", "loaded whole"
Order = Literal["C", "F"]


@dataclass(frozen=True, eq=False)
class Stored:
    """An array that was found but not read; ``read(start, stop)`` gives its rows (axis -2, or 0 for a list of labels).

    Arrays of files that are not tables have ``read(start, stop, 0)`` too, where rows are on the first axis.
    ``problem`` is what makes it unfit for predictions, in the words of its format.
    """

    shape: tuple[int, ...]
    dtype: str
    access: str
    read: Callable[..., NDArray]
    problem: str = ""

    @property
    def rows(self) -> int:
        """How many rows ``read`` can give."""
        return self.shape[-2] if len(self.shape) > 1 else self.shape[0]

    @property
    def unfolded_bytes(self) -> int:
        """How many bytes reading all of it makes of a compressed file; none where the file holds plain memory."""
        return 0 if self.access == MAPPED else math.prod(self.shape) * np.dtype(self.dtype).itemsize


def mapped(
    path: Path,
    offset: int,
    dtype: np.dtype,
    shape: tuple[int, ...],
    /,
    *,
    order: Order = "C",
    name: str = "",
    verify: Callable[[], None] = lambda: None,
) -> Stored:
    """An array that lies in ``path`` as plain memory from byte ``offset`` on.

    Each read maps the file, copies its rows and lets go of the map: the pages of a map that stays open count as this
    process's memory, and in the end the whole file would. ``name="bfloat16"`` decodes two-byte words. ``verify`` is
    called before each read, and raises a ValueError where the bytes are not those that were written.
    """
    needed, present = offset + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if needed > present:
        raise ValueError(f"an array of shape {shape} needs {needed} bytes, and the file has {present}")

    def read(start: int, stop: int, axis: int = -2) -> NDArray:
        with readable(path):
            verify()
            whole = np.memmap(path, dtype, "r", offset, shape, order)
        return _decoded(_rows(whole, start, stop, axis), name)

    return Stored(shape, name or dtype.name, MAPPED, read)


def loaded(path: Path, dtype: np.dtype, shape: tuple[int, ...], load: Callable[[], NDArray], /) -> Stored:
    """An array in ``path`` that can only be read as a whole, by ``load``, which is called at the first read."""
    once = cache(load)

    def read(start: int, stop: int, axis: int = -2) -> NDArray:
        with readable(path):
            return _rows(once(), start, stop, axis)

    return Stored(shape, dtype.name, LOADED, read)


def _rows(array: NDArray, start: int, stop: int, axis: int) -> NDArray:
    """A copy of rows start..stop in the byte order of this machine."""
    part = array[start:stop] if array.ndim == 1 or axis == 0 else array[..., start:stop, :]
    return np.array(part, dtype=array.dtype.newbyteorder("="), order="C")


def _decoded(rows: NDArray, name: str) -> NDArray:
    """bfloat16 is the upper half of a float32."""
    return (rows.astype(np.uint32) << 16).view(np.float32) if name == BFLOAT16 else rows


def refuse_objects(dtype: np.dtype, /) -> None:
    """Python objects in a file can only be pickled ones, and unpickling runs whatever code the file holds."""
    if dtype.hasobject:
        raise UnsuitableError("holds pickled Python objects, which are never loaded; save a plain array of numbers.")
