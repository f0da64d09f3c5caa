"""Arrays in .npy, .npz and .safetensors files: found by their headers and read by rows. Nothing is ever unpickled.

A .npz has a CRC-32 of each array, which is compared before any of its values is given away: one pass over the array.
The others have none: their length must be what the header says, but a changed value, dtype or order of axes is not noticed.
"""

from __future__ import annotations

import io
import json
import math
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Literal, final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from credalens.storage.formats.files import UnsuitableError, check_crc, readable

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
        """The number of rows that ``read`` can give."""
        return self.shape[-2] if len(self.shape) > 1 else self.shape[0]

    @property
    def unfolded_bytes(self) -> int:
        """The bytes that reading all of it makes of a compressed file; none where the file holds plain memory."""
        return 0 if self.access == MAPPED else math.prod(self.shape) * np.dtype(self.dtype).itemsize


def _mapped(
    path: Path, offset: int, dtype: np.dtype, shape: tuple[int, ...], /, *, order: Order = "C", name: str = "",
    verify: Callable[[], None] = lambda: None,
) -> Stored:  # fmt: skip
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
        rows = _rows(whole, start, stop, axis)
        return (rows.astype(np.uint32) << 16).view(np.float32) if name == BFLOAT16 else rows  # half of a float32

    return Stored(shape, name or dtype.name, MAPPED, read)


def _rows(array: NDArray, start: int, stop: int, axis: int) -> NDArray:
    """A copy of rows start..stop in the byte order of this machine."""
    part = array[start:stop] if array.ndim == 1 or axis == 0 else array[..., start:stop, :]
    return np.array(part, dtype=array.dtype.newbyteorder("="), order="C")


ZIP_HEADER: Final = struct.Struct("<4s5H3I2H")  # the fixed part in front of an entry's name, extra field and bytes
LONGEST_NPY_HEADER: Final = 1 << 14  # NumPy refuses descriptions of more than 10,000 bytes, but reads them first
NPY_HEADERS: Final = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def npy_arrays(path: Path, /) -> dict[str, Stored]:
    """The one array of a .npy file, which has no name."""
    with path.open("rb") as file:
        shape, order, dtype, begin = _npy_header(file, path.stat().st_size)
    return {"": _mapped(path, begin, dtype, shape, order=order)}


def npz_arrays(path: Path, /) -> dict[str, Stored]:
    """The arrays of a .npz file by name: ``np.savez`` lets them be mapped, ``np.savez_compressed`` does not."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        _check_names(entries)
        return {entry.filename.removesuffix(".npy"): _entry(path, archive, entry) for entry in entries}


def _check_names(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse names that NumPy never writes: an array whose name is damaged must not be taken for none.

    That the names agree with those in front of the arrays is compared where these are opened.
    """
    for entry in entries:
        name = entry.orig_filename  # up to its end: zipfile cuts names at a zero
        if name != entry.filename or not name.endswith(".npy"):
            raise ValueError(f"its entry {name!r} is no array: its name does not end in .npy")
        if (number := sum(other.filename == name for other in entries)) > 1:
            raise ValueError(f"it has {number} entries {name!r}")


def _entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Stored:
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnsuitableError(f"{entry.filename} is compressed in a way that NumPy never writes; save it with NumPy.")
    with archive.open(entry) as file:
        shape, order, dtype, begin = _npy_header(file, entry.file_size)
    if entry.compress_type == zipfile.ZIP_DEFLATED:
        whole = cache(partial(_inflated, path, entry))  # read when its first rows are

        def read(start: int, stop: int, axis: int = -2) -> NDArray:
            with readable(path):
                return _rows(whole(), start, stop, axis)

        return Stored(shape, dtype.name, LOADED, read)
    with path.open("rb") as file:  # the entry's own header may be longer than the archive's directory says
        file.seek(entry.header_offset)
        *_, name, extra = ZIP_HEADER.unpack(file.read(ZIP_HEADER.size))
    start = entry.header_offset + ZIP_HEADER.size + name + extra
    verify = partial(check_crc, path, start, entry.file_size, entry.CRC)
    return _mapped(path, start + begin, dtype, shape, order=order, verify=verify)


def _inflated(path: Path, entry: zipfile.ZipInfo) -> NDArray:
    """All of a compressed entry; its checksum is compared when the last byte has been read."""
    with zipfile.ZipFile(path) as archive, archive.open(entry) as file:
        array: NDArray = npy.read_array(file, allow_pickle=False)
    return array


def _npy_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], Order, np.dtype, int]:
    """Shape, order and dtype of an array that has ``size`` bytes with its header, and where its values begin."""
    start = io.BytesIO(file.read(LONGEST_NPY_HEADER))
    version = npy.read_magic(start)
    if version not in NPY_HEADERS:
        raise UnsuitableError(f"is of version {version} of the npy format; a plain array of floats never needs it.")
    shape, fortran, dtype = NPY_HEADERS[version](start)
    if dtype.hasobject:  # unpickling runs whatever code the file holds
        raise UnsuitableError("holds pickled Python objects, which are never loaded; save a plain array of numbers.")
    if start.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"an array of {size} bytes cannot have shape {shape} of {dtype}")
    return shape, "F" if fortran else "C", dtype, start.tell()


@final
class NpzWriter:
    """Writes scored rows as a .npz that ``np.load`` maps: a ``RowWriter``.

    Each column is an entry, uncompressed, with a fixed date so that runs are equal. An archive holds one array after the
    other, so that columns grow in files of their own in ``scratch`` until all rows are there.
    """

    def __init__(self, file: BinaryIO, settings: Mapping[str, Any], scratch: Path, /) -> None:
        self._file, self._settings, self._scratch = file, settings, scratch
        self._columns: dict[str, tuple[BinaryIO, np.dtype, tuple[int, ...]]] = {}
        self._open, self._rows = ExitStack(), 0

    def write(self, columns: dict[str, NDArray], ids: Any = None, /) -> None:
        """Append to each column."""
        for name, values in columns.items():
            if name not in self._columns:
                file = self._open.enter_context((self._scratch / f"{name}.column").open("w+b"))
                self._columns[name] = file, values.dtype, values.shape[1:]
            self._columns[name][0].write(np.ascontiguousarray(values).data)
        self._rows += len(values)

    def finish(self, notes: Mapping[str, str], /) -> None:
        """Put the columns into the archive."""
        with zipfile.ZipFile(self._file, "w") as archive:
            for name, (column, dtype, shape) in self._columns.items():
                header = {"descr": dtype.str, "fortran_order": False, "shape": (self._rows, *shape)}
                column.seek(0)
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                    npy.write_array_header_1_0(entry, header)
                    shutil.copyfileobj(column, entry, 1 << 20)
            with archive.open(zipfile.ZipInfo("settings.npy"), "w") as entry:
                npy.write_array(entry, np.array(json.dumps(self._settings)), allow_pickle=False)

    def close(self) -> None:
        """Let go of the columns' files."""
        self._open.close()


LENGTH: Final = struct.Struct("<Q")
LONGEST_SAFETENSORS_HEADER: Final = 100_000_000  # the format's own limit
DTYPES: Final = {
    "F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8",
    "I8": "|i1", "U8": "|u1", "I16": "<i2", "I32": "<i4", "I64": "<i8", "BOOL": "|b1",
}  # fmt: skip
DTYPE_NAMES: Final = {dtype: name for name, dtype in DTYPES.items() if name != "BF16"}


def safetensors_arrays(path: Path, /) -> dict[str, Stored]:
    """The arrays of a .safetensors file by name: a length, a JSON header, plain memory."""
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = LENGTH.unpack(file.read(LENGTH.size))
        if length > min(LONGEST_SAFETENSORS_HEADER, size - LENGTH.size):
            raise ValueError(f"its header should have {length} bytes")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise TypeError(f"its header is a JSON {type(header).__name__}, not an object")
    header.pop("__metadata__", None)
    start = LENGTH.size + length
    # The arrays lie one after the other, from the first byte after the header to the last.
    edges = [0, *chain.from_iterable(sorted(_sizes(entry["data_offsets"]) for entry in header.values())), size - start]
    if edges[::2] != edges[1::2]:
        raise ValueError(f"its arrays do not fill the {size - start} bytes after the header")
    return {name: _tensor(path, start, entry) for name, entry in header.items()}


def _tensor(path: Path, start: int, entry: dict) -> Stored:
    if entry["dtype"] not in DTYPES:
        raise UnsuitableError(f"holds values of dtype {entry['dtype']}; use one of {', '.join(DTYPES)}.")
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), _sizes(entry["shape"])
    begin, end = entry["data_offsets"]
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"shape {shape} of {entry['dtype']} does not fit bytes {begin} to {end}")
    return _mapped(path, start + begin, dtype, shape, name=BFLOAT16 if entry["dtype"] == "BF16" else "")


def _sizes(values: Any) -> tuple[int, ...]:
    if not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"{values} should be integers of at least 0")
    return tuple(values)


def write_safetensors(file: BinaryIO, arrays: dict[str, NDArray], /) -> None:
    """Write named arrays; the header is padded so that the values are aligned for a map."""
    little = {name: np.ascontiguousarray(x, x.dtype.newbyteorder("<")) for name, x in arrays.items()}
    ends = np.cumsum([x.nbytes for x in little.values()]).tolist()
    header = {
        name: {"dtype": DTYPE_NAMES[x.dtype.str], "shape": x.shape, "data_offsets": [end - x.nbytes, end]}
        for (name, x), end in zip(little.items(), ends, strict=True)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % LENGTH.size)
    file.write(LENGTH.pack(len(text)) + text)
    for x in little.values():
        file.write(x.data)
