"""A file, or a folder of files, appears whole under its name, or not at all."""

from __future__ import annotations

import os
import shutil
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
    ``scratch`` is the folder, on the same file system, where it grows; by default the folder of ``path``.
    """
    path = Path(path)
    partial = (scratch or path.parent) / f".{path.name}.{uuid.uuid4().hex}{PARTIAL}"
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_target(path: str | os.PathLike[str], /) -> Path:
    """A path that a file can be written to: its folder exists and it is no folder itself."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; name a file in it.")
    if not path.parent.is_dir():
        remedy = "it is a file, name a folder" if path.parent.exists() else "create it first"
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}; {remedy}.")
    return path


def check_folder_target(path: str | os.PathLike[str], /) -> Path:
    """A path that a folder can be written to: its parent exists, and it is no file."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"cannot write {target}: it is a file; name a folder.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: there is no folder {target.parent}; create it first.")
    return target


@contextmanager
def atomic_folder(path: str | os.PathLike[str], /) -> Iterator[Path]:
    """A new folder to write into, whose files take their places under ``path`` only when the block ends without an error."""
    target = check_folder_target(path)
    scratch = target.parent / f".{target.name}.{uuid.uuid4().hex}{PARTIAL}"
    try:
        with _naming_target(target):
            scratch.mkdir()
            yield scratch
            _settle(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _naming_target(target: Path) -> Iterator[None]:
    """Name the folder that was asked for, not the one that is written in its place."""
    try:
        yield
    except OSError as error:
        raise OSError(f"cannot write {target}: {error.strerror or error}.") from error


def _settle(scratch: Path, target: Path) -> None:
    """Put all bytes on disk, then rename the folder, or the files one by one where there is a folder already."""
    written = sorted(path for path in scratch.rglob("*") if path.is_file())
    for path in written:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    if not target.exists():
        scratch.rename(target)
        return
    for path in written:
        place = target / path.relative_to(scratch)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
