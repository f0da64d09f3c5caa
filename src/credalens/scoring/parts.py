"""Finished parts of an output, kept in OUT.parts/ until all are there. This is what a killed run goes on from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from credalens.scoring.columns import sums_of
from credalens.scoring.plan import Plan
from credalens.storage.atomic import PARTIAL, atomic_file

__all__ = ["Parts", "open_parts"]

MANIFEST, LOCK = "manifest.json", "lock"
OURS = re.compile(rf"{re.escape(MANIFEST)}|{LOCK}|part-\d+\.parquet|\..*{re.escape(PARTIAL)}")


@dataclass(frozen=True)
class Parts:
    """The folder of a run. A part in it is whole: it was written elsewhere and took its name when it was done."""

    folder: Path
    plan: Plan

    def path(self, part: int, /) -> Path:
        """Where a part lies once it is finished."""
        return self.folder / f"part-{part:08d}.parquet"

    def write(self, part: int, table: pa.Table, /) -> None:
        """Finish a part."""
        with atomic_file(self.path(part)) as file:
            pq.write_table(table, file, use_dictionary=["label"])

    def is_finished(self, part: int, /) -> bool:
        """Whether a part is there with all its rows; one that a disk has damaged is not."""
        start, stop = self.plan.bounds(part)
        try:
            return bool(pq.read_metadata(self.path(part)).num_rows == stop - start)
        except (FileNotFoundError, pa.ArrowInvalid):
            return False

    def missing(self) -> list[int]:
        """The parts that are still to be done."""
        return [part for part in range(self.plan.parts) if not self.is_finished(part)]

    def paths(self) -> Iterator[Path]:
        """All parts in the order of the rows."""
        return map(self.path, range(self.plan.parts))

    def sums(self) -> dict[str, float]:
        """Sums over all rows, from the footers of the parts."""
        every = [sums_of(pq.read_schema(path).metadata) for path in self.paths()]
        return {name: sum(sums[name] for sums in every) for name in every[0]}

    def remove(self) -> None:
        """Delete the folder; the manifest goes first, so that what a kill leaves here counts as rubbish."""
        (self.folder / MANIFEST).unlink(missing_ok=True)
        _clear(self.folder)
        (self.folder / LOCK).unlink(missing_ok=True)
        self.folder.rmdir()


@contextmanager
def open_parts(target: Path, plan: Plan, /, *, restart: bool = False) -> Iterator[Parts]:
    """The parts of the run that ``plan`` describes: those of a killed run with the same plan, or none yet."""
    parts = Parts(target.with_name(f"{target.name}.parts"), plan)
    with _locked(parts.folder, target):
        _prepare(parts, target, restart)
        yield parts


def _prepare(parts: Parts, target: Path, restart: bool) -> None:
    manifest = parts.folder / MANIFEST
    if restart:
        manifest.unlink(missing_ok=True)
    if manifest.exists():
        _check_same(manifest, parts.plan, target)
        _clear(parts.folder, "*" + PARTIAL)
        return
    _clear(parts.folder)
    try:
        with atomic_file(manifest) as file:
            file.write(json.dumps(asdict(parts.plan), indent=2).encode())
    except OSError as error:
        parts.remove()
        raise OSError(f"cannot write {target}: {error.strerror}.") from error


def _check_ours(folder: Path) -> None:
    strangers = sorted(entry.name for entry in folder.iterdir() if not OURS.fullmatch(entry.name))
    if strangers:
        raise ValueError(f"{folder} holds a file that is no part of an output ({strangers[0]}); move the folder away.")


def _clear(folder: Path, pattern: str = "*") -> None:
    for entry in folder.glob(pattern):
        if entry.name not in (MANIFEST, LOCK):
            entry.unlink()


def _check_same(manifest: Path, plan: Plan, target: Path) -> None:
    try:
        stored = json.loads(manifest.read_bytes())
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        raise ValueError(f"{manifest} is damaged; pass --restart (restart=True) to begin anew.")
    differences = plan.differences(stored)
    if differences:
        raise ValueError(
            f"{manifest.parent} holds the unfinished run of {target.name} with {differences}. Finish that one with its own "
            "options, or pass --restart (restart=True) to drop it and begin anew."
        )


@contextmanager
def _locked(folder: Path, target: Path) -> Iterator[None]:
    """Keep a second run out; the lock ends with the process, however it ends. Windows goes without."""
    with _lock_file(folder, target) as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except BlockingIOError as error:
            raise ValueError(
                f"another run is writing {target} right now; wait for it, or name another file."
            ) from error
        yield


def _lock_file(folder: Path, target: Path) -> BinaryIO:
    try:
        folder.mkdir(exist_ok=True)
        _check_ours(folder)
        return (folder / LOCK).open("ab")
    except OSError as error:
        raise OSError(f"cannot write {target}: {error.strerror} ({folder}).") from error
