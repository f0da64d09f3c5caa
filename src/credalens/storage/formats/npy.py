"""The arrays of .npy and .npz files, found by their headers and read by rows. Nothing is ever unpickled.

A .npz has a CRC-32 of each array, which is compared before any of its values is given away: one pass over the array.
A .npy has none: its length must be what its header says, but a changed value, dtype or order of axes is not noticed.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from credalens.storage.formats.files import UnsuitableError, check_crc
from credalens.storage.formats.stored_array import Order, Stored, loaded, mapped, refuse_objects

LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # ZIP: the fixed part in front of an entry's name, extra field and bytes
LONGEST_HEADER = 1 << 14  # NumPy refuses descriptions of more than 10,000 bytes, but reads them first
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Header(NamedTuple):
    """What the first bytes of a .npy file say, and how many there are."""

    shape: tuple[int, ...]
    order: Order
    dtype: np.dtype
    size: int


def npy_arrays(path: Path, /) -> dict[str, Stored]:
    """The one array of a .npy file, which has no name."""
    with path.open("rb") as file:
        header = _header(file)
    _check_length(header, path.stat().st_size)
    return {"": mapped(path, header.size, header.dtype, header.shape, order=header.order)}


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
        header = _header(file)
    _check_length(header, entry.file_size)
    if entry.compress_type == zipfile.ZIP_DEFLATED:
        return loaded(path, header.dtype, header.shape, partial(_inflated, path, entry))
    start = _entry_offset(path, entry)
    verify = partial(check_crc, path, start, entry.file_size, entry.CRC)
    return mapped(path, start + header.size, header.dtype, header.shape, order=header.order, verify=verify)


def _inflated(path: Path, entry: zipfile.ZipInfo) -> NDArray:
    """All of a compressed entry; its checksum is compared when the last byte has been read."""
    with zipfile.ZipFile(path) as archive, archive.open(entry) as file:
        array: NDArray = npy.read_array(file, allow_pickle=False)
    return array


def _check_length(header: Header, size: int) -> None:
    if header.size + math.prod(header.shape) * header.dtype.itemsize != size:
        raise ValueError(f"an array of {size} bytes cannot have shape {header.shape} of {header.dtype}")


def _entry_offset(path: Path, entry: zipfile.ZipInfo) -> int:
    """Where an entry's bytes begin; its local header may be longer than the archive's directory says."""
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        *_, name, extra = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    return entry.header_offset + LOCAL_HEADER.size + name + extra


def _header(file: IO[bytes]) -> Header:
    start = io.BytesIO(file.read(LONGEST_HEADER))
    version = npy.read_magic(start)
    if version not in HEADERS:
        raise UnsuitableError(f"is of version {version} of the npy format; a plain array of floats never needs it.")
    shape, fortran, dtype = HEADERS[version](start)
    refuse_objects(dtype)
    return Header(shape, "F" if fortran else "C", dtype, start.tell())
