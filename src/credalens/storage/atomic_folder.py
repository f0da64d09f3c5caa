"""A folder of files appears whole under its name, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from credalens.storage.atomic import PARTIAL, check_folder, keep_mode, side_name
from credalens.storage.lock import LOCK, locked


@contextmanager
def atomic_folder(path: str | os.PathLike[str], /, *, stale: Iterable[str] = ()) -> Iterator[Path]:
    """A new folder to write into, whose files take their places under ``path`` only when the block ends without an error.

    Files of ``stale``, by their paths below ``path``, that were not written anew are deleted then. The new folder is
    ``.NAME.partial/files`` beside ``path``, locked for the time of the block; what a killed run left there is removed.
    """
    target = check_folder(path).resolve()
    scratch = target.parent / side_name(target.name, PARTIAL, hidden=True)
    try:
        with _naming_target(target), locked(scratch / LOCK, target), _emptied(scratch / "files") as files:
            yield files
            _settle(files, target, stale)
    finally:
        with suppress(OSError):
            scratch.rmdir()


@contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _naming_target(target: Path) -> Iterator[None]:
    """Name the folder that was asked for, not the one that is written in its place."""
    try:
        yield
    except OSError as error:
        raise OSError(f"cannot write {target}: {error.strerror or error}.") from error


def _settle(scratch: Path, target: Path, stale: Iterable[str]) -> None:
    """Put all bytes on disk, then rename the folder, or the files one by one where there is a folder already."""
    written = sorted(path for path in scratch.rglob("*") if path.is_file())
    for path in written:
        with path.open("r+b") as file:  # Windows puts only files that are open for writing on disk
            os.fsync(file.fileno())
    if not target.exists():
        scratch.rename(target)
        return
    for path in written:
        place = target / path.relative_to(scratch)
        place.parent.mkdir(parents=True, exist_ok=True)
        keep_mode(place, path)
        path.replace(place)
    renewed = {path.relative_to(scratch).as_posix() for path in written}
    for name in sorted(set(stale) - renewed):
        (target / name).unlink(missing_ok=True)
        with suppress(OSError):  # of a folder that holds other files
            (target / name).parent.rmdir()
