"""Parts that all formats share: the format of a file, checksums, limits of unfolding, and the words of errors."""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tokenize import TokenError
from typing import Final
from zipfile import BadZipFile

from credalens.checks.options import escaped

ALL_FORMATS = (".npy", ".npz", ".parquet", ".safetensors")
# What the readers of these formats raise at bytes that are not theirs.
BROKEN = (
    ValueError, LookupError, TypeError, ArithmeticError, EOFError, RuntimeError, AttributeError, SyntaxError, TokenError,
    BadZipFile, zlib.error, struct.error,
)  # fmt: skip


class UnsuitableError(ValueError):
    """A file that is whole but does not hold what is wanted; ``readable`` adds its name."""


def format_of(path: Path, /, formats: Iterable[str] = ALL_FORMATS) -> str:
    """The suffix of ``path`` in lower case, one of ``formats``."""
    suffix = path.suffix.lower()
    if suffix not in formats:
        *others, last = formats
        raise ValueError(
            f"{path}: unknown format {suffix or '(no suffix)'!r}; the name must end in {', '.join(others)} or {last}."
        )
    return suffix


def source_file(path: str | os.PathLike[str], /) -> Path:
    """A file that exists and has one of the formats."""
    path = Path(path)
    format_of(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; name a file.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    return path


@contextmanager
def readable(path: object, /) -> Iterator[None]:
    """Word whatever a reader says about a broken file as one sentence that names the file."""
    try:
        yield
    except UnsuitableError as error:
        raise ValueError(escaped(f"{path}: {error}")) from error
    except MemoryError as error:  # a few changed bytes can ask for gigabytes; so can a good file
        advice = "if the file is whole, read fewer rows at a time (--chunk-rows)"
        message = f"{path}: needs more memory than there is ({_reason(error)}); {advice}."
        raise OSError(errno.ENOMEM, escaped(message)) from error
    except (*BROKEN, OSError) as error:
        if _is_fault_of_disk(error):
            raise
        words = f"it is damaged, cut short or of another format ({_reason(error)})"
        raise ValueError(escaped(f"{path}: cannot be read: {words}.")) from error


@contextmanager
def restoring(path: str | os.PathLike[str], what: str, /) -> Iterator[None]:
    """Word whatever a reader says about a file that is no saved ``what``, or a damaged one, as a sentence that names it."""
    try:
        yield
    except (*BROKEN, OSError, MemoryError) as error:
        if _is_fault_of_disk(error):
            raise
        reason = f"{error} is missing." if isinstance(error, KeyError) else _reason(error)
        if isinstance(error, MemoryError):
            reason = "it asks for more memory than there is."
        raise ValueError(escaped(f"{path} is not a saved {what}: {reason}")) from error


def _is_fault_of_disk(error: BaseException) -> bool:
    """Tell faults of a disk from an offset or bytes that make no sense."""
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


BLOCK: Final = 1 << 16


def check_crc(path: Path, start: int, size: int, expected: int, /) -> None:
    """Refuse bytes that differ from those that were written."""
    status = path.stat()
    if _crc(path, (status.st_ino, status.st_size, status.st_mtime_ns), start, size) != expected:
        raise ValueError(f"the checksum of bytes {start} to {start + size} is wrong")


@lru_cache(maxsize=256)
def _crc(path: Path, state: tuple[int, ...], start: int, size: int) -> int:
    """One pass with the memory of a block; ``state`` tells an old file from a new one of its name."""
    crc, buffer = 0, memoryview(bytearray(BLOCK))
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while size > 0 and (count := file.readinto(buffer[: min(BLOCK, size)])):
            crc = zlib.crc32(buffer[:count], crc)
            size -= count
    return crc


ANY_FILE: Final = 1 << 30
TIMES_ITS_SIZE: Final = 100


def check_unfolded(needed: int, size: int, max_bytes: int | None, /) -> None:
    """Refuse a file of ``size`` bytes whose values take ``needed`` bytes in memory, before any of them is read.

    The limit is ``max_bytes``; by default one GiB, or 100 times the size of the file where that is more.
    """
    limit = max(ANY_FILE, TIMES_ITS_SIZE * size) if max_bytes is None else max_bytes
    if needed > limit:
        raise UnsuitableError(
            f"its {size:,} bytes unfold to {needed:,}, and the limit is {limit:,}: such a file can be made to fill the memory. "
            f"If you trust it, read it with max_bytes={needed} (--max-bytes {needed})."
        )
