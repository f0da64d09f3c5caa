"""Folders on this machine or in an object store, through the file systems of Arrow."""

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

from credalens.storage.atomic import PARTIAL, atomic_file

__all__ = ["FoundFile", "Place", "place_of"]

PARQUET = ".parquet"


@dataclass(frozen=True, order=True)
class FoundFile:
    """A file below a folder by its relative name, with what changes when it is written again."""

    name: str
    size: int
    time: int


@dataclass(frozen=True)
class Place:
    """A path in a file system; it can be sent to another machine that reaches the same files."""

    path: str
    filesystem: Any = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.path

    @property
    def local(self) -> bool:
        """Whether files are written by this machine's own calls."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    @property
    def kind(self) -> Any:
        """File, directory or not found."""
        return self.filesystem.get_file_info(self.path).type

    def __truediv__(self, name: str, /) -> Place:
        return Place(f"{self.path}/{name}", self.filesystem)

    def parquet_files(self) -> tuple[FoundFile, ...]:
        """All Parquet files below, in the order of their names; those that begin with a dot or underscore are not data."""
        selector = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        found = (self._found(info) for info in self.filesystem.get_file_info(selector) if info.is_file)
        return tuple(sorted(file for file in found if _is_data(file.name)))

    def as_one_file(self) -> FoundFile:
        """This very file, found in the folder that holds it."""
        return FoundFile(self.path.rpartition("/")[2], *_state(self.filesystem.get_file_info(self.path)))

    def parent(self) -> Place:
        """The folder that holds this."""
        return Place(self.path.rpartition("/")[0], self.filesystem)

    def real_path(self) -> str:
        """The one path of what several may lead to through links and dots; an object store has neither."""
        return os.path.realpath(self.path) if self.local else self.path

    def open(self) -> Any:
        """The file for reading at any place."""
        return self.filesystem.open_input_file(self.path)

    def read(self) -> bytes:
        """The whole file."""
        with self.open() as file:
            return bytes(file.read())

    def remove(self) -> None:
        """Delete the file; none there is fine."""
        if self.kind != fs.FileType.NotFound:
            self.filesystem.delete_file(self.path)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Open a file that takes its name only when the block ends without an error.

        An object store shows an object when it is closed, also one that was closed by an error: hence the move.
        """
        self.filesystem.create_dir(self.parent().path, recursive=True)
        if self.local:
            with atomic_file(self.path) as file:
                yield file
            return
        partial = self.parent() / f".{self.path.rpartition('/')[2]}.{uuid.uuid4().hex}{PARTIAL}"
        try:
            with self.filesystem.open_output_stream(partial.path) as file:
                yield file
            self.filesystem.move(partial.path, self.path)
        finally:
            partial.remove()

    def files(self) -> tuple[list[Place], list[Place]]:
        """All files below, whole ones and those that killed writers have left half written."""
        selector = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        whole, partial = list[Place](), list[Place]()
        for info in self.filesystem.get_file_info(selector):
            if info.is_file:
                (partial if _is_partial(info.base_name) else whole).append(Place(info.path, self.filesystem))
        return whole, partial

    def sweep(self) -> None:
        """Delete what killed writers have left half written."""
        for file in self.files()[1]:
            file.remove()

    def _found(self, info: Any) -> FoundFile:
        return FoundFile(info.path.removeprefix(f"{self.path}/"), *_state(info))


def place_of(where: str | os.PathLike[str], /, filesystem: Any = None) -> Place:
    """A local path, a URI such as s3://bucket/folder, or a path in the file system that is given.

    >>> place_of("file:///data/members").path
    '/data/members'
    """
    text = os.fspath(where)
    if filesystem is not None:
        return Place(text.rstrip("/"), filesystem)
    if "://" not in text:
        return Place(str(Path(text).absolute()), fs.LocalFileSystem())
    try:
        found, path = fs.FileSystem.from_uri(text)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"{text}: no file system for this address ({error}); use a path, s3://, gs:// or abfs://."
        ) from error
    return Place(path.rstrip("/"), found)


def _state(info: Any) -> tuple[int, int]:
    return info.size or 0, info.mtime_ns or 0


def _is_partial(name: str) -> bool:
    return name.startswith(".") and name.endswith(PARTIAL)


def _is_data(name: str) -> bool:
    hidden = any(part.startswith((".", "_")) for part in name.split("/"))
    return name.lower().endswith(PARQUET) and not hidden
