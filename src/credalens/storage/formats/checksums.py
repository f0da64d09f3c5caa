"""CRC-32 of a range of bytes in a file, computed once as long as the file does not change."""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path
from typing import Final

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
