"""Paths on this machine or in an object store, through the file systems of Arrow."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from credalens.checks.options import escaped
from credalens.storage.atomic import PARTIAL, side_name


@dataclass(frozen=True, order=True)
class FileState:
    """A file below a folder by its relative name, with what changes when it is written again."""

    name: str
    size: int
    time: int


@dataclass(frozen=True)
class ArrowPath:
    """A path in a file system, with the methods of ``pathlib.Path`` that a ``RunFolder`` needs.

    It can be sent to another machine that reaches the same files.
    """

    path: str
    filesystem: Any = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.path

    def __truediv__(self, name: str, /) -> ArrowPath:
        return ArrowPath(f"{self.path}/{name}", self.filesystem)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> ArrowPath:
        """The folder that holds this."""
        return ArrowPath(self.path.rpartition("/")[0], self.filesystem)

    @property
    def is_local(self) -> bool:
        """True where files are written by this machine's own calls."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def is_file(self) -> bool:
        """Tell whether a file has this path."""
        return bool(self._info().type == fs.FileType.File)

    def exists(self) -> bool:
        """Tell whether a file or folder has this path."""
        return bool(self._info().type != fs.FileType.NotFound)

    def resolve(self) -> str:
        """The path without links and dots; an object store has neither."""
        return _real(self.path) if self.is_local else self.path

    def open(self) -> Any:
        """Open the file for reading at any position."""
        return self.filesystem.open_input_file(self.path)

    def read_bytes(self) -> bytes:
        """Read the whole file."""
        with self.open() as file:
            return bytes(file.read())

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the file."""
        if not missing_ok or self.exists():
            self.filesystem.delete_file(self.path)

    @contextmanager
    def atomic_file(self) -> Iterator[Any]:
        """Open a file for writing that takes its name only when the block ends without an error; its folder is made.

        An object store shows an object when it is closed, also when an error closes it: hence the move.
        """
        self.filesystem.create_dir(self.parent.path, recursive=True)
        partial = self.parent / side_name(self.name, f".{uuid.uuid4().hex}{PARTIAL}", hidden=True)
        try:
            with self.filesystem.open_output_stream(partial.path) as file:
                yield file
            self.filesystem.move(partial.path, self.path)
        finally:
            partial.unlink(missing_ok=True)

    def state(self) -> FileState:
        """Name, size and time of this file."""
        return _state(self._info(), self.name)

    def files(self) -> list[FileState]:
        """All files below this folder, in the order of their names; none where there is no folder.

        Links of this machine are followed; a folder that they lead to a second time is left out.
        """
        if self.is_local:
            found = _local_files(self.path, "", {_real(self.path)}) if Path(self.path).is_dir() else ()
            return sorted(found)
        selector = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        entries = (info for info in self.filesystem.get_file_info(selector) if info.is_file)
        return sorted(_state(info, info.path.removeprefix(f"{self.path}/")) for info in entries)

    def _info(self) -> Any:
        return self.filesystem.get_file_info(self.path)


def _local_files(folder: str, prefix: str, seen: set[str]) -> Iterator[FileState]:
    """The files of a folder, then those below it: real folders before links, and none that holds the link itself."""
    entries = sorted(os.scandir(folder), key=lambda entry: (entry.is_symlink(), entry.name))
    for entry in entries:
        if entry.is_file():
            status = entry.stat()
            yield FileState(prefix + entry.name, status.st_size, status.st_mtime_ns)
    here = _real(folder)
    for entry in entries:
        real = _real(entry.path)
        if entry.is_dir() and real not in seen and not f"{here}/".startswith(f"{real}/"):
            seen.add(real)
            yield from _local_files(entry.path, f"{prefix}{entry.name}/", seen)


def arrow_path(where: str | os.PathLike[str], /, filesystem: Any = None) -> ArrowPath:
    """A local path, a URI such as s3://bucket/folder, or a path in the file system that is given.

    >>> arrow_path("file:///data/members").path
    '/data/members'
    """
    text = check_utf8(os.fspath(where))
    if filesystem is not None:
        return ArrowPath(text.rstrip("/"), filesystem)
    if "://" not in text:
        return ArrowPath(Path(text).absolute().as_posix(), fs.LocalFileSystem())
    try:
        filesystem, path = fs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"{text}: no file system for this address ({error}); use a path, s3://, gs:// or abfs://."
        ) from error
    return ArrowPath(path.rstrip("/"), filesystem)


def check_utf8(path: str, /) -> str:
    """A path that Arrow can pass on; bytes in a name that are no text are halves of characters in Python."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ValueError(escaped(f"{path}: its name is not UTF-8, which Arrow needs; rename it.")) from error
    return path


def _real(path: str) -> str:
    """Without links and dots, steps separated by "/" on every system, as in Arrow."""
    return Path(os.path.realpath(path)).as_posix()


def _state(info: Any, name: str) -> FileState:
    return FileState(name, info.size or 0, info.mtime_ns or 0)
