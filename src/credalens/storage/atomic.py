"""Files and folders appear whole under their names, or not at all, and one run at a time writes them.

Where something will be written is looked at before the work begins.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shutil
import stat
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from credalens.checks.options import needing

PARTIAL: Final = ".partial"
LOCK: Final = ".lock"
PATIENCE: Final = 0.2  # seconds in which a run that is just ending lets go of its lock
DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_LOCKS: Final = (errno.ENOSYS, errno.EOPNOTSUPP)
LONGEST_NAME: Final = 255  # bytes, in nearly every file system


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
    outputs: Iterable[str | os.PathLike[str]], inputs: Iterable[str | os.PathLike[str] | None], /, *,
    doing: str = "read",
) -> None:  # fmt: skip
    """Refuse to replace a file that is read, under whatever name: before anything is read, and for side files too."""
    there = [Path(path) for path in outputs if Path(path).exists()]
    for source in (Path(path) for path in inputs if path is not None and Path(path).exists()):
        if same := next((path for path in there if path.samefile(source)), None):
            raise ValueError(
                f"cannot write {same}: it is the file that is being {doing}, {source}; choose another name."
            )


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
        with partial.open("xb") as file:
            _keep_mode(path, partial, like=like)
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno in DISK_FULL and error.filename is None:  # of a full disk the system names no file
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str], /, *, stale: Iterable[str] = ()) -> Iterator[Path]:
    """A new folder to write into, whose files take their places under ``path`` only when the block ends without an error.

    Files of ``stale``, by their paths below ``path``, that were not written anew are deleted then.
    """
    target = check_folder(path).resolve()
    with naming_output(target), scratch_folder(target) as files:
        yield files
        _settle(files, target, stale)


@contextmanager
def naming_output(output: object, /) -> Iterator[None]:
    """Word what the system refuses as a sentence that names the output, not what is written in its place."""
    try:
        yield
    except OSError as error:
        raise OSError(f"cannot write {output}: {error.strerror or error}.") from error


@contextmanager
def scratch_folder(target: Path, /) -> Iterator[Path]:
    """An empty folder in which ``target`` grows, locked for the time of the block and deleted afterwards.

    It is ``.NAME.partial/files`` beside the target; what a killed run left there is deleted first. It is nobody else's to
    read: what grows there may take the place of a file that is not either.
    """
    scratch = target.parent / side_name(target.name, PARTIAL, hidden=True)
    files = scratch / "files"
    try:
        with locked(scratch / LOCK, target):
            shutil.rmtree(files, ignore_errors=True)
            try:
                files.mkdir()
                yield files
            finally:
                shutil.rmtree(files, ignore_errors=True)
    finally:
        with suppress(OSError):
            scratch.rmdir()


@contextmanager
def locked(path: Path, output: object, /) -> Iterator[None]:
    """Hold the lock file at ``path`` for the time of the block; an error where another run holds it.

    The lock is one of the operating system, which lets go of it when its holder dies. It keeps out runs on other machines
    where the file system tells them, as NFS does; a file system that has no locks is warned of.
    """
    with needing("filelock", part="writing into a folder", extra="cli"):
        from filelock import FileLock, Timeout
    path.parent.mkdir(0o700 if path.parent.name.endswith(PARTIAL) else 0o777, parents=True, exist_ok=True)
    lock = FileLock(path, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=PATIENCE)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        with suppress(OSError):  # a full disk may refuse what the error of another run would tell
            path.write_text(f"process {os.getpid()} on {platform.node()}, since {since}", encoding="utf-8")
    except Timeout:
        raise ValueError(
            f"another run is writing into {output} right now{_holder(path)}; wait for it to end, stop it, or name another "
            f"output. Its lock is {path}."
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warnings.warn(
            f"the file system of {output} has no locks, so that nothing keeps a second run out: start none.",
            stacklevel=4,
        )
    try:
        yield
    finally:
        with suppress(OSError):  # before it is released: whoever has opened it already then sees that it is gone
            path.unlink()
        lock.release()


def _holder(path: Path) -> str:
    try:
        return f": {text}" if (text := path.read_text(encoding="utf-8")).startswith("process ") else ""
    except (OSError, ValueError):
        return ""


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


def _keep_mode(path: Path, successor: Path, *, like: Path | None = None) -> None:
    """Give a file the permissions of the one whose place it will take, if there is one; else none that ``like`` lacks."""
    if path.exists():
        successor.chmod(_mode(path))
    elif like is not None and like.exists():
        successor.chmod(_mode(successor) & _mode(like))


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _settle(files: Path, target: Path, stale: Iterable[str]) -> None:
    """Put all bytes on disk, then rename the folder, or the files one by one where there is a folder already."""
    written = sorted(path for path in files.rglob("*") if path.is_file())
    for path in written:
        with path.open("r+b") as file:  # Windows puts only files that are open for writing on disk
            os.fsync(file.fileno())
    if not target.exists():
        files.rename(target)
        return
    for path in written:
        place = target / path.relative_to(files)
        place.parent.mkdir(parents=True, exist_ok=True)
        _keep_mode(place, path)
        path.replace(place)
    renewed = {path.relative_to(files).as_posix() for path in written}
    for name in sorted(set(stale) - renewed):
        (target / name).unlink(missing_ok=True)
        with suppress(OSError):  # of a folder that holds other files
            (target / name).parent.rmdir()


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; Windows has no such call and needs none."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
