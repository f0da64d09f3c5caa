"""A file appears whole under its name, or not at all; where it will be written is looked at before the work begins."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final


def check_folder(path: str | os.PathLike[str], /, *, option: str = "") -> Path:
    """A folder to write into, which ``option`` of a command named: it is there, or can be made below one that is."""
    path, said = Path(path), f" ({option})" if option else ""
    near = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not near.is_dir():
        raise NotADirectoryError(f"cannot write into {path}: {near} is a file; name a folder{said}.")
    if not os.access(near, os.W_OK | os.X_OK):
        raise PermissionError(
            f"cannot write into {path}: there is no permission to write in {near}; name another folder{said}."
        )
    return path


def check_file(path: str | os.PathLike[str], /, *, make_folder: bool = False) -> Path:
    """A file to write or replace; its folder must be there, unless it will be made."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it.")
    if not path.parent.is_dir() and not make_folder:
        remedy = "it is a file, name a folder" if path.parent.exists() else "create it first"
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}; {remedy}.")
    check_folder(path.parent)
    return path


def check_no_input(
    outputs: Iterable[str | os.PathLike[str]],
    inputs: Iterable[str | os.PathLike[str] | None],
    /,
    *,
    doing: str = "read",
) -> None:
    """Refuse to replace a file that is read, under whatever name: before anything is read, and for side files too."""
    there = [Path(path) for path in outputs if Path(path).exists()]
    if not there:
        return
    for source in (Path(path) for path in inputs if path is not None):
        same = next((path for path in there if source.exists() and path.samefile(source)), None)
        if same is not None:
            raise ValueError(
                f"cannot write {same}: it is the file that is being {doing}, {source}; choose another name."
            )


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
