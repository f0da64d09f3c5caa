"""A file appears whole under its name, or not at all."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"


@contextmanager
def atomic_file(path: str | os.PathLike[str], /, *, scratch: Path | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the name ``path`` only when the block ends without an error.

    The bytes are on disk before the name changes hands, so that not even a power cut leaves a half-written file there.
    Whoever may not read a file that is there may not read what takes its place either. ``scratch`` is the folder, on the
    same file system, where it grows; by default the folder of ``path``.
    """
    path = Path(path)
    partial = (scratch or path.parent) / f".{path.name}.{uuid.uuid4().hex}{PARTIAL}"
    try:
        with partial.open("xb") as file:
            keep_mode(path, partial)
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def keep_mode(path: Path, successor: Path, /) -> None:
    """Give a file the permissions of the one whose place it will take, if there is one."""
    if path.exists():
        successor.chmod(stat.S_IMODE(path.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
