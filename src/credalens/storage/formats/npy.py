"""The arrays of .npy and .npz files, found by their headers and read by rows. Nothing is ever unpickled."""

from __future__ import annotations

import math
import struct
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from credalens.storage.formats.stored_array import Order, Stored, loaded, mapped, refuse_objects
from credalens.storage.formats.suffixes import UnsuitableError

LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # ZIP: the fixed part in front of an entry's name, extra field and bytes
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
    return {"": mapped(path, header.size, header.dtype, header.shape, order=header.order)}


def npz_arrays(path: Path, /) -> dict[str, Stored]:
    """The arrays of a .npz file by name: ``np.savez`` lets them be mapped, ``np.savez_compressed`` does not."""
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        return {entry.filename.removesuffix(".npy"): _entry(path, archive, entry) for entry in entries}


def _entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Stored:
    with archive.open(entry) as file:
        header = _header(file)  # type: ignore[arg-type]
        if header.size + math.prod(header.shape) * header.dtype.itemsize != entry.file_size:
            raise ValueError(f"{entry.filename} has {entry.file_size} bytes, which do not make shape {header.shape}")
        if entry.compress_type != zipfile.ZIP_STORED:
            file.seek(0)
            return loaded(npy.read_array(file, allow_pickle=False))
    offset = _entry_offset(path, entry) + header.size
    return mapped(path, offset, header.dtype, header.shape, order=header.order)


def _entry_offset(path: Path, entry: zipfile.ZipInfo) -> int:
    """Where an entry's bytes begin; its local header may be longer than the archive's directory says."""
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        *_, name, extra = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    return entry.header_offset + LOCAL_HEADER.size + name + extra


def _header(file: BinaryIO) -> Header:
    version = npy.read_magic(file)
    if version not in HEADERS:
        raise UnsuitableError(f"is of version {version} of the npy format; a plain array of floats never needs it.")
    shape, fortran, dtype = HEADERS[version](file)
    refuse_objects(dtype)
    return Header(shape, "F" if fortran else "C", dtype, file.tell())
