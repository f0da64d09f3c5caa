"""The folder that a run writes into: whose it is, which of its parts are finished, and what does not belong there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyarrow import fs

from credalens.scoring.folder_part import PartReport, finished_part
from credalens.scoring.folder_plan import FolderJob
from credalens.scoring.places import Place
from credalens.scoring.tables import Table

__all__ = ["check_apart", "finished_parts", "prepare_output"]

MANIFEST = "_credalens.json"
LOOKING = 16  # footers of an object store that are asked for at a time


def check_apart(target: Place, tables: Iterable[Table], /) -> None:
    """Refuse to write into the input, or around it: the next run would take its output for input."""
    for table in tables:
        one, other = f"{target.real_path()}/", f"{table.source.real_path()}/"
        if target.filesystem == table.root.filesystem and (one.startswith(other) or other.startswith(one)):
            raise ValueError(f"cannot write {target}: the input is in {table}; name a folder beside it.")


def prepare_output(job: FolderJob, /, *, restart: bool) -> None:
    """Make the folder this run's own, or find that it is; refuse one with other files or of a run with other options."""
    target = job.target
    if target.kind == fs.FileType.File:
        raise NotADirectoryError(f"cannot write {target}: it is a file; a table is written into a folder.")
    if restart:
        _drop(target)
    stored = _read_manifest(target)
    if stored is None:
        _check_empty(target)
        with (target / MANIFEST).writing() as file:
            file.write(json.dumps(job.settings, indent=1).encode())
        return
    changed = [key for key in job.settings if job.settings[key] != stored.get(key)]
    if changed:
        words = ", ".join(f"{key} {stored.get(key)!r} instead of {job.settings[key]!r}" for key in changed)
        raise ValueError(f"{target} was written with {words}. Name another folder, or begin anew with --restart.")
    _check_expected(job)


def finished_parts(job: FolderJob, /) -> dict[int, PartReport]:
    """The parts that are there already, from their footers."""
    there = {file.name for file in job.target.parquet_files()}
    numbers = [n for n, part in enumerate(job.inputs.tables[0].parts) if part.name in there]
    with ThreadPoolExecutor(LOOKING) as pool:
        reports = pool.map(lambda number: finished_part(job, number), numbers)
        return {report.part: report for report in reports if report is not None}


def _read_manifest(target: Place) -> dict[str, Any] | None:
    manifest = target / MANIFEST
    if manifest.kind == fs.FileType.NotFound:
        return None
    try:
        return dict(json.loads(manifest.read()))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{manifest} is damaged; begin anew with --restart.") from error


def _check_empty(target: Place) -> None:
    files, _ = target.files()  # what is half written was left by a run that was killed before it had a manifest
    if files:
        raise ValueError(f"cannot write {target}: it holds files of another origin ({files[0]}); name a new folder.")


def _check_expected(job: FolderJob) -> None:
    extra = sorted({file.name for file in job.target.parquet_files()} - set(job.inputs.tables[0].names))
    if extra:
        raise ValueError(
            f"{job.target} holds {len(extra)} parts that the input no longer has, such as {extra[0]}; begin anew with "
            "--restart, or put the input's part back."
        )


def _drop(target: Place) -> None:
    """Remove what an earlier run has written; the manifest goes last, so that a kill leaves the folder ours."""
    if (target / MANIFEST).kind == fs.FileType.NotFound:
        return
    for file in target.parquet_files():
        (target / file.name).remove()
    target.sweep()
    (target / MANIFEST).remove()
