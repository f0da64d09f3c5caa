"""The folder of a long run: a manifest, complete parts, and how a stopped run resumes.

    folder/manifest.json        {"settings": {...}, "parts": [...]}: what decides every number, also a fingerprint of the
                                input, and the names of the parts; no other file is ever deleted
    folder/part-000000.npz      parts; the caller names them. Each appears whole or not at all
    folder/.lock                held while a run writes, see ``lock``
    folder/.NAME.HEX.partial    half written by a process that was killed; the next run removes it

A run enters ``begun`` with its settings, skips what ``parts`` lists, and writes the rest with ``writing``. The same program
started again does exactly that, and so resumes. A folder that is only ``locked`` has no manifest: its user compares settings
that it keeps elsewhere, in the files themselves for instance, with ``check_settings``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, final

from credalens.checks.options import count_text
from credalens.storage.atomic import DISK_FULL, PARTIAL, atomic_file
from credalens.storage.lock import LOCK, Lock, locked

if TYPE_CHECKING:
    from credalens.storage.arrow_path import ArrowPath

MAKER: Final = "credalens"
REMEDY: Final = "Use the same settings, name another folder, or begin again with --restart (restart=True)."


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder of parts, on this machine (``Path``) or in any file system of Arrow (``ArrowPath``).

    :ivar manifest: the name of the manifest.
    :ivar remedy: what an error about other settings advises.

    >>> import tempfile
    >>> run = RunFolder(Path(tempfile.mkdtemp()))
    >>> with run.begun({"seed": 1}, parts=["part-0.txt"]), run.writing("part-0.txt") as file:
    ...     _ = file.write(b"done")
    >>> with run.begun({"seed": 1}, parts=["part-0.txt"]):
    ...     run.parts()
    ['part-0.txt']
    >>> with run.begun({"seed": 2}):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
    ValueError: ... was made with other settings: seed was 1 and is now 2. Use the same settings, ...
    """

    path: Path | ArrowPath
    manifest: str = "manifest.json"
    remedy: str = REMEDY

    @contextmanager
    def begun(
        self,
        settings: Mapping[str, Any],
        /,
        *,
        parts: Collection[str] = (),
        restart: bool = False,
        defaults: Mapping[str, Any] | None = None,
        phrases: Mapping[str, str] | None = None,
    ) -> Iterator[Lock]:
        """Lock the folder for the time of the block, and make it this run's, or find that it is.

        Refuses a file, a folder of other files without a manifest, a run with other settings, and finished parts that
        are not among ``parts``, the names of those to come. ``restart`` deletes the parts of an earlier run first; what a
        killed process left half written is always removed. ``defaults`` are settings that older manifests do not name;
        for ``phrases`` see ``check_settings``.
        """
        with self.locked() as lock:
            self._check_origin()
            if restart and self._has_manifest():
                self._clear_parts()
                self._write_first_manifest(settings, parts)
            self.remove_partial_files()
            if self._has_manifest():
                stored = {**(defaults or {}), **self.read_manifest()["settings"]}
                check_settings(stored, settings, self.path, self.remedy, phrases=phrases)
                self._check_parts(parts)
                if sorted(parts) != self._named():
                    self.write_manifest(settings, parts=sorted(parts))
            else:
                self._write_first_manifest(settings, parts)
            yield lock

    @contextmanager
    def locked(self) -> Iterator[Lock]:
        """Keep a second run out for the time of the block; a folder that was made for the run is removed if it is empty."""
        if self.path.is_file():
            raise NotADirectoryError(f"cannot write {self.path}: it is a file; name a folder.")
        folder = self._folder()
        ours = not folder.exists() or bool(self._names())
        try:
            with locked(folder / LOCK, self.path) as lock:
                yield lock
        finally:
            if ours and isinstance(folder, Path):
                with suppress(OSError):
                    folder.rmdir()

    def parts(self) -> list[str]:
        """The names of the finished parts, in order."""
        named = set(self._named())
        return [name for name in self._names() if name in named]

    def writing(self, name: str, /) -> AbstractContextManager[BinaryIO]:
        """Open a file that takes its name only when the block ends without an error; folders on the way are made.

        Whoever may not read the manifest may not read a part either, also after a restart has deleted an older one.
        """
        folder = self._folder()
        return _writing(folder / name, folder / self.manifest)

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
        self.write_json(self.manifest, {"made_by": MAKER, "settings": dict(settings), **facts})

    def read_manifest(self) -> dict[str, Any]:
        """The manifest; one that is the settings alone was written by an older version."""
        where = self.path / self.manifest
        try:
            manifest = json.loads(where.read_bytes())
            parts = sorted(map(str, manifest.get("parts", ())))
            return {**manifest, "settings": dict(manifest.get("settings", manifest)), "parts": parts}
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{where} is damaged ({error}), so it is unknown which files belong to the run; delete {self.path} "
                "yourself, or name another output."
            ) from error

    def remove_partial_files(self) -> None:
        """Delete what killed processes left half written."""
        for name in self._names():
            if _is_partial(name):
                (self.path / name).unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete the parts that the manifest names, and last itself, so that a kill leaves the folder this run's."""
        if self._has_manifest():
            self._clear_parts()
            (self.path / self.manifest).unlink(missing_ok=True)

    def _clear_parts(self) -> None:
        if self.read_manifest().get("made_by") != MAKER:
            raise ValueError(
                f"{self.path / self.manifest} was not written by this version of credalens, so nothing is deleted; delete "
                f"{self.path} yourself, or name another output."
            )
        for name in self.parts():
            (self.path / name).unlink(missing_ok=True)
        self.remove_partial_files()

    def _write_first_manifest(self, settings: Mapping[str, Any], parts: Collection[str]) -> None:
        """A disk may refuse the manifest when it has its name already."""
        try:
            self.write_manifest(settings, parts=sorted(parts))
        except OSError:
            (self.path / self.manifest).unlink(missing_ok=True)
            raise

    def _folder(self) -> Path | ArrowPath:
        """A path of this machine as such: its calls make a file exclusively, and follow no links."""
        if isinstance(self.path, Path) or not self.path.is_local:
            return self.path
        return Path(self.path.path)

    def _names(self) -> list[str]:
        folder = self._folder()
        if not isinstance(folder, Path):
            return [file.name for file in folder.files()]
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())

    def _named(self) -> list[str]:
        return self.read_manifest()["parts"] if self._has_manifest() else []

    def _has_manifest(self) -> bool:
        return (self.path / self.manifest).is_file()

    def _check_origin(self) -> None:
        """A folder with files is this program's where there is a manifest."""
        if self._has_manifest():
            return
        foreign = [name for name in self._names() if name != LOCK and not _is_partial(name)]
        if foreign:
            raise ValueError(
                f"cannot write into {self.path}: it contains other files ({foreign[0]}) and no {self.manifest}; "
                "name a new or empty folder."
            )

    def _check_parts(self, parts: Collection[str]) -> None:
        extra = sorted(set(self.parts()) - set(parts))
        if extra:
            raise ValueError(
                f"{self.path} holds {count_text(len(extra), 'part')} that the input no longer has, such as {extra[0]}; begin "
                "anew with --restart, or put the input's part back."
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
    """Refuse to continue from files that were made with other settings, and name those that differ.

    ``phrases`` stand in place of values that tell a reader nothing, such as fingerprints.
    """
    differences = settings_differences(stored, json.loads(json.dumps(asked)), phrases=phrases)
    if differences:
        raise ValueError(f"{where} was made with other settings: {'; '.join(differences)}. {remedy}")


@contextmanager
def _writing(path: Path | ArrowPath, like: Path | ArrowPath) -> Iterator[BinaryIO]:
    """An atomic file whose folder is made, and a clear word when the disk is full."""
    try:
        with _atomic_file(path, like) as file:
            yield file
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        message = "the file was not written. What was finished before is kept: make room and run the same again"
        raise OSError(error.errno, f"{os.strerror(error.errno)}; {message}", str(path)) from error


def _atomic_file(path: Path | ArrowPath, like: Path | ArrowPath) -> AbstractContextManager[BinaryIO]:
    if not isinstance(path, Path) or not isinstance(like, Path):
        return path.atomic_file()  # type: ignore[union-attr]
    path.parent.mkdir(parents=True, exist_ok=True)
    return atomic_file(path, like=like)


def _is_partial(name: str) -> bool:
    return re.fullmatch(rf"\..+\.[0-9a-f]{{32}}{re.escape(PARTIAL)}", name.rpartition("/")[2]) is not None
