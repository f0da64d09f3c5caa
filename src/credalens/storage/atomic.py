"""A file appears whole under its name, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

PARTIAL = ".partial"
DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LONGEST_NAME: Final = 255  # bytes, in nearly every file system


@contextmanager
def atomic_file(
    path: str | os.PathLike[str], /, *, scratch: Path | None = None, like: Path | None = None
) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the name ``path`` only when the block ends without an error.

    The bytes are on disk before the name changes hands, so that not even a power cut leaves a half-written file there.
    Whoever may not read a file that is there may not read what takes its place either. ``scratch`` is the folder, on the
    same file system, where it grows; by default the folder of ``path``. A new file is open to nobody to whom ``like`` is
    closed.
    """
    path = Path(path)
    partial = (scratch or path.parent) / side_name(path.name, f".{uuid.uuid4().hex}{PARTIAL}", hidden=True)
    try:
        with naming_full_disk(path), partial.open("xb") as file:
            keep_mode(path, partial, like=like)
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def naming_full_disk(path: object, /) -> Iterator[None]:
    """Name the file that a disk refuses to write, where the system's error names none."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL and error.filename is None:
            error.filename = str(path)
        raise


def side_name(name: str, suffix: str, /, *, hidden: bool = False) -> str:
    """The name of a file or folder beside ``name`` that serves it, always the same; a long one is shortened to fit.

    >>> side_name("out.npz", ".parts"), side_name("report", ".partial", hidden=True)
    ('out.npz.parts', '.report.partial')
    """
    dot = "." if hidden else ""
    if len(os.fsencode(dot + name + suffix)) <= LONGEST_NAME:
        return dot + name + suffix
    suffix = f"~{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}{suffix}"
    while len(os.fsencode(dot + name + suffix)) > LONGEST_NAME:
        name = name[:-1]
    return dot + name + suffix


def keep_mode(path: Path, successor: Path, /, *, like: Path | None = None) -> None:
    """Give a file the permissions of the one whose place it will take, if there is one; else none that ``like`` lacks."""
    if path.exists():
        successor.chmod(_mode(path))
    elif like is not None and like.exists():
        successor.chmod(_mode(successor) & _mode(like))


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
