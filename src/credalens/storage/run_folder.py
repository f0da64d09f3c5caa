"""The folder of a long run: a manifest, parts that are whole, and how a stopped run goes on.

    folder/manifest.json        {"settings": {...}}: what decides every number in the parts, also a fingerprint of the input
    folder/part-000000.npz      parts; the caller names them. Each appears whole or not at all
    folder/lock                 held while a run writes, where a run asks for it
    folder/.NAME.HEX.partial    half written by a process that was killed; the next run removes it

A run calls ``begin`` with its settings, skips what ``parts`` lists, and writes the rest with ``writing``. The same program
started again does exactly that, and goes on. A folder without ``begin`` has no manifest: its user compares settings that
it keeps elsewhere, in the files themselves for instance, with ``check_settings``.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, final

from credalens.storage.atomic import PARTIAL, atomic_file

if TYPE_CHECKING:
    from credalens.storage.arrow_path import ArrowPath

LOCK: Final = "lock"
DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REMEDY: Final = "Use the same settings, name another folder, or begin again with --restart (restart=True)."


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder of parts, on this machine (``Path``) or in any file system of Arrow (``ArrowPath``).

    :ivar manifest: the name of the manifest.
    :ivar pattern: which names are parts, as in a shell; names that begin with a dot or an underscore never are.
    :ivar remedy: what an error about other settings or a damaged manifest advises.

    >>> import tempfile
    >>> run = RunFolder(Path(tempfile.mkdtemp()), pattern="part-*")
    >>> run.begin({"seed": 1})
    >>> with run.writing("part-0.txt") as file:
    ...     _ = file.write(b"done")
    >>> run.begin({"seed": 1})
    >>> run.parts()
    ['part-0.txt']
    >>> run.begin({"seed": 2})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ... was made with other settings: seed was 1 and is now 2. Use the same settings, ...
    """

    path: Path | ArrowPath
    manifest: str = "manifest.json"
    pattern: str = "*"
    remedy: str = REMEDY

    def begin(
        self,
        settings: Mapping[str, Any],
        /,
        *,
        restart: bool = False,
        defaults: Mapping[str, Any] | None = None,
        phrases: Mapping[str, str] | None = None,
    ) -> None:
        """Make the folder this run's, or find that it is; what a killed process left half written is removed.

        Refuses a file, a folder of other files without a manifest, and a run with other settings. ``restart`` deletes the
        parts of an earlier run first. ``defaults`` are settings that older manifests do not name; for ``phrases`` see
        ``check_settings``.
        """
        if self.path.is_file():
            raise NotADirectoryError(f"cannot write {self.path}: it is a file; name a folder.")
        self._check_origin()
        if restart:
            self.clear()
        self.remove_partial_files()
        if not self._has_manifest():
            self.write_manifest(settings)
            return
        stored = {**(defaults or {}), **self.read_manifest()["settings"]}
        check_settings(stored, settings, self.path, self.remedy, phrases=phrases)

    def parts(self) -> list[str]:
        """The names of the finished parts, in order."""
        return [name for name in self._names() if self._is_part(name)]

    def writing(self, name: str, /) -> AbstractContextManager[BinaryIO]:
        """Open a file that takes its name only when the block ends without an error; folders on the way are made."""
        return _writing(self.path / name)

    def write_json(self, name: str, content: Any, /) -> None:
        """Write JSON, indented so that two files can be compared line by line; NaN is refused."""
        with self.writing(name) as file:
            file.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")

    def read_json(self, name: str, /) -> Any:
        """The content of a JSON file, or an error that names the file."""
        try:
            return json.loads((self.path / name).read_bytes())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path / name} is damaged ({error}); delete it to have it made again.") from error

    def write_manifest(self, settings: Mapping[str, Any], /, **facts: Any) -> None:
        """Write the settings, and facts that are known later, such as the number of parts of a finished run."""
        self.write_json(self.manifest, {"settings": dict(settings), **facts})

    def read_manifest(self) -> dict[str, Any]:
        """The manifest; one that is the settings alone was written by an older version."""
        where = self.path / self.manifest
        try:
            manifest = json.loads(where.read_bytes())
            return {**manifest, "settings": dict(manifest.get("settings", manifest))}
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{where} is damaged ({error}). {self.remedy}") from error

    def remove_partial_files(self) -> None:
        """Delete what killed processes left half written."""
        for name in self._names():
            if _is_partial(name):
                (self.path / name).unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete the parts; the manifest goes last, so that a kill leaves the folder this run's."""
        for name in self.parts():
            (self.path / name).unlink(missing_ok=True)
        self.remove_partial_files()
        (self.path / self.manifest).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete a local folder with its parts; files of others stay, and the folder with them."""
        self.clear()
        (self.path / LOCK).unlink(missing_ok=True)
        if self.path.exists() and not self._names():
            Path(str(self.path)).rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out of a local folder; the lock ends with the process, however it ends. Windows has none."""
        folder = Path(str(self.path))
        folder.mkdir(exist_ok=True)
        self._check_origin()
        with (folder / LOCK).open("ab") as file:
            try:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:
                pass
            except BlockingIOError as error:
                raise ValueError(f"another run is writing into {folder} right now; wait for it to end.") from error
            yield

    def _names(self) -> list[str]:
        if not isinstance(self.path, Path):
            return [file.name for file in self.path.files()]
        return sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file())

    def _is_part(self, name: str) -> bool:
        hidden = any(step.startswith((".", "_")) for step in name.split("/"))
        return not hidden and name not in (self.manifest, LOCK) and fnmatchcase(name, self.pattern)

    def _has_manifest(self) -> bool:
        return (self.path / self.manifest).is_file()

    def _check_origin(self) -> None:
        """A folder with files is this program's where there is a manifest."""
        if self._has_manifest():
            return
        foreign = [name for name in self._names() if name != LOCK and not _is_partial(name)]
        if foreign:
            raise ValueError(
                f"cannot write into {self.path}: it holds files of another origin ({foreign[0]}) and no {self.manifest}; "
                "name a new or empty folder."
            )


def settings_differences(
    stored: Mapping[str, Any],
    asked: Mapping[str, Any],
    /,
    *,
    phrases: Mapping[str, str] | None = None,
    prefix: str = "",
) -> list[str]:
    """Where two settings differ, a phrase each; nested ones by their dotted name.

    >>> settings_differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}})
    ['a.c was 2 and is now 3']
    >>> settings_differences({"input": "1f"}, {"input": "2e"}, phrases={"input": "the input has changed"})
    ['the input has changed']
    """
    lines = []
    for name in sorted(stored.keys() | asked.keys()):
        before, now = stored.get(name), asked.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            lines += settings_differences(before, now, phrases=phrases, prefix=f"{prefix}{name}.")
        elif before != now:
            lines.append((phrases or {}).get(name) or f"{prefix}{name} was {before!r} and is now {now!r}")
    return list(dict.fromkeys(lines))


def check_settings(
    stored: Mapping[str, Any],
    asked: Mapping[str, Any],
    where: object,
    remedy: str = REMEDY,
    /,
    *,
    phrases: Mapping[str, str] | None = None,
) -> None:
    """Refuse to go on from files that were made with other settings, and name those that differ.

    ``phrases`` stand in place of values that tell a reader nothing, such as fingerprints.
    """
    differences = settings_differences(stored, json.loads(json.dumps(asked)), phrases=phrases)
    if differences:
        raise ValueError(f"{where} was made with other settings: {'; '.join(differences)}. {remedy}")


@contextmanager
def _writing(path: Path | ArrowPath) -> Iterator[BinaryIO]:
    """An atomic file whose folder is made, and a clear word when the disk is full."""
    try:
        with _atomic_file(path) as file:
            yield file
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        message = "the file was not written. What was finished before is kept: make room and run the same again"
        raise OSError(error.errno, f"{os.strerror(error.errno)}; {message}", str(path)) from error


def _atomic_file(path: Path | ArrowPath) -> AbstractContextManager[BinaryIO]:
    if not isinstance(path, Path):
        return path.atomic_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    return atomic_file(path)


def _is_partial(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(PARTIAL)
