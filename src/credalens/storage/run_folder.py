"""The folder of a long run: a manifest, complete parts, and how a stopped run resumes.

    folder/manifest.json        {"settings": {...}, "parts": [...]}: what decides every number, also a fingerprint of the
                                input, and the names of the parts; no other file is ever deleted
    folder/part-000000.npz      parts; the caller names them. Each appears whole or not at all
    folder/.lock                held while a run writes, see ``locked``; an object store has none
    folder/.NAME.HEX.partial    half written by a process that was killed; the next run removes it

A run enters ``open_run`` with its settings, skips what ``parts`` lists, and writes the rest with ``writing``. The same program
started again does exactly that, and so resumes. A folder that is only ``locked`` has no manifest: its user compares settings
that it keeps elsewhere, in the files themselves for instance, with ``check_settings``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, final

from credalens.checks.options import count_text
from credalens.storage.atomic import DISK_FULL, LOCK, PARTIAL, atomic_file, locked

if TYPE_CHECKING:
    from credalens.storage.arrow_path import ArrowPath

MAKER: Final = "credalens"
REMEDY: Final = "Use the same settings, name another folder, or begin again with --restart (restart=True)."


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder of parts, on this machine (``Path``) or in an object store (``ArrowPath``).

    :ivar remedy: what an error about other settings advises.

    >>> import tempfile
    >>> run = RunFolder(Path(tempfile.mkdtemp()))
    >>> with run.open_run({"seed": 1}, parts=["part-0.txt"]), run.writing("part-0.txt") as file:
    ...     _ = file.write(b"done")
    >>> with run.open_run({"seed": 1}, parts=["part-0.txt"]):
    ...     run.parts()
    ['part-0.txt']
    >>> with run.open_run({"seed": 2}):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
    ValueError: ... was made with other settings: seed was 1 and is now 2. Use the same settings, ...
    """

    path: Path | ArrowPath
    manifest: str = "manifest.json"
    remedy: str = REMEDY

    @contextmanager
    def open_run(
        self, settings: Mapping[str, Any], /, *, parts: Collection[str] = (), restart: bool = False,
        defaults: Mapping[str, Any] | None = None, phrases: Mapping[str, str] | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """Lock the folder for the time of the block, and make it this run's, or find that it is.

        Refuses a file, a folder of other files without a manifest, a run with other settings, and finished parts that
        are not among ``parts``, the names of those to come. ``restart`` deletes the parts of an earlier run first; what a
        killed process left half written is always removed. ``defaults`` are settings that older manifests do not name;
        for ``phrases`` see ``check_settings``.
        """
        with self.locked():
            ours = self._has_manifest()
            foreign = [name for name in self._names() if name != LOCK and not _is_partial(name)]
            if foreign and not ours:
                raise ValueError(
                    f"cannot write into {self.path}: it contains other files ({foreign[0]}) and no {self.manifest}; "
                    "name a new or empty folder."
                )
            if ours and restart:
                self._delete_parts()
            self.remove_partial_files()
            if ours and not restart:
                stored = {**(defaults or {}), **self.read_manifest()["settings"]}
                check_settings(stored, settings, self.path, self.remedy, phrases=phrases)
                if extra := sorted(set(self.parts()) - set(parts)):
                    raise ValueError(
                        f"{self.path} holds {count_text(len(extra), 'part')} that the input no longer has, such as "
                        f"{extra[0]}; begin anew with --restart, or put the input's part back."
                    )
            if not ours or restart or sorted(parts) != self._named():
                try:
                    self.write_manifest(settings, parts=sorted(parts))
                except OSError:
                    if not ours:  # a disk may refuse the content when the file has its name already
                        (self.path / self.manifest).unlink(missing_ok=True)
                    raise
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out for the time of the block; a folder that was made for the run is removed if it is empty."""
        if self.path.is_file():
            raise NotADirectoryError(f"cannot write {self.path}: it is a file; name a folder.")
        if not isinstance(self.path, Path):
            yield
            return
        ours = not self.path.exists() or bool(self._names())
        try:
            with locked(self.path / LOCK, self.path):
                yield
        finally:
            if ours:
                with suppress(OSError):
                    self.path.rmdir()

    def check_unchanged(self, settings: Mapping[str, Any], /) -> None:
        """Raise an error where a run with other settings has made the folder its own: nothing locks an object store."""
        if not isinstance(self.path, Path) and settings_differences(self.read_manifest()["settings"], _plain(settings)):
            raise ValueError(
                f"another run has taken over {self.path}; nothing more is written. Run the same again when the other one has "
                "ended, with another folder."
            )

    def parts(self) -> list[str]:
        """The names of the finished parts, in order."""
        named = set(self._named())
        return [name for name in self._names() if name in named]

    @contextmanager
    def writing(self, name: str, /) -> Iterator[BinaryIO]:
        """Open a file that takes its name only when the block ends without an error; folders on the way are made.

        Whoever may not read the manifest may not read a part either, also after a restart has deleted an older one.
        """
        path = self.path / name
        try:
            if isinstance(path, Path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_file(path, like=Path(str(self.path), self.manifest)) as file:
                    yield file
            else:
                with path.atomic_file() as file:
                    yield file
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            message = "the file was not written. What was finished before is kept: make room and run the same again"
            raise OSError(error.errno, f"{os.strerror(error.errno)}; {message}", str(path)) from error

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

    def _delete_parts(self) -> None:
        """Delete what the manifest names, and nothing else."""
        if self.read_manifest().get("made_by") != MAKER:
            raise ValueError(
                f"{self.path / self.manifest} was not written by this version of credalens, so nothing is deleted; delete "
                f"{self.path} yourself, or name another output."
            )
        for name in self.parts():
            (self.path / name).unlink(missing_ok=True)

    def _names(self) -> list[str]:
        if not isinstance(self.path, Path):
            return [file.name for file in self.path.files()]
        return sorted(path.relative_to(self.path).as_posix() for path in self.path.rglob("*") if path.is_file())

    def _named(self) -> list[str]:
        return self.read_manifest()["parts"] if self._has_manifest() else []

    def _has_manifest(self) -> bool:
        return (self.path / self.manifest).is_file()


def settings_differences(
    stored: Mapping[str, Any], asked: Mapping[str, Any], /, *, phrases: Mapping[str, str] | None = None,
    prefix: str = "",
) -> list[str]:  # fmt: skip
    """Phrases about where two settings differ, one each; nested ones by their dotted name.

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
    stored: Mapping[str, Any], asked: Mapping[str, Any], where: object, remedy: str = REMEDY, /, *,
    phrases: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Refuse to continue from files that were made with other settings, and name those that differ.

    ``phrases`` stand in place of values that tell a reader nothing, such as fingerprints.
    """
    if differences := settings_differences(stored, _plain(asked), phrases=phrases):
        raise ValueError(f"{where} was made with other settings: {'; '.join(differences)}. {remedy}")


def _plain(settings: Mapping[str, Any]) -> Any:
    """The settings as they come back from JSON."""
    return json.loads(json.dumps(settings))


def _is_partial(name: str) -> bool:
    return re.fullmatch(rf"\..+\.[0-9a-f]{{32}}{re.escape(PARTIAL)}", name.rpartition("/")[2]) is not None
