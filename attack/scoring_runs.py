"""Runs of ``credalens score``: inputs, commands, and what they leave behind."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attack.case import Case
from attack.ensembles import ensemble
from credalens.scoring import score_file, score_folder
from credalens.storage import save_predictions


@dataclass(frozen=True)
class Run:
    """One input, one output: a file each, or a folder of Parquet files each."""

    source: Path
    target: Path
    rows: int
    chunk_rows: int
    base: float
    folder: bool

    def at(self, target: Path, /) -> Run:
        """The same with another output; a file gets its suffix."""
        return replace(self, target=target if self.folder else target.with_suffix(self.target.suffix))

    def work_folder(self) -> Path:
        """Where files appear while it runs."""
        return self.target if self.folder else self.target.with_name(f".{self.target.name}.partial") / "files"

    def arguments(self) -> list[str]:
        """What follows ``credalens``."""
        options = ["--chunk-rows", str(self.chunk_rows), "--base", str(self.base), "--threads", "1", "--json"]
        return ["score", str(self.source), "-o", str(self.target), *options]

    def command(self) -> list[str]:
        """The command line, in this Python."""
        return [sys.executable, "-m", "credalens.cli", *self.arguments()]


def write_input(case: Case, /, *, rows: int = 60, parts: int = 5, folder: bool | None = None) -> Run:
    """Predictions to score, as one file in some format, or as a folder of Parquet files; every part takes some rows."""
    base = ensemble(case, rows=min(rows, 30), classes=(2, 8), members=(1, 5))
    values = np.tile(base, (1, -(-rows // base.shape[1]), 1))[:, :rows]
    chunk = max(1, rows // parts)
    if case.between(0, 1) if folder is None else folder:
        return _input_folder(case, values, parts)
    source = case.folder / f"in{case.choose('.npy', '.npz', '.parquet', '.safetensors')}"
    save_predictions(source, values)
    return Run(source, case.folder / f"none{case.choose('.parquet', '.npz')}", rows, chunk, case.choose(2, 10), False)


def _input_folder(case: Case, values: np.ndarray, parts: int) -> Run:
    source = case.folder / "in"
    source.mkdir()
    for number, rows in enumerate(np.array_split(values, parts, axis=1)):
        save_predictions(source / f"part-{number:04d}.parquet", rows)
    return Run(source, case.folder / "none", values.shape[1], values.shape[1], case.choose(2, 10), True)


def score(run: Run, /, **options: Any) -> None:
    """In this process, by the public functions."""
    function = score_folder if run.folder else score_file
    function(run.source, run.target, chunk_rows=run.chunk_rows, base=run.base, threads=1, **options)


def leftovers(run: Run, /) -> list[str]:
    """What a run must not leave behind when it ends: partial files, and anything beside its output."""
    names = [run.target.name, f".{run.target.name}"]
    beside = [path for path in run.target.parent.iterdir() if path.name.startswith(tuple(names)) and path != run.target]
    inside = [path for folder in (run.target, *beside) for path in folder.rglob("*")]
    partial = [path for path in inside if path.name.startswith(".") or run.target not in path.parents]
    return sorted(path.relative_to(run.target.parent).as_posix() for path in (*beside, *partial))


def tree(path: Path, /) -> dict[str, bytes]:
    """All files at or below a path, by their place in it."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def first_difference(found: dict[str, bytes], wanted: dict[str, bytes], /) -> str:
    """Empty where two trees are the same."""
    if found.keys() != wanted.keys():
        return f"files {sorted(found.keys() - wanted.keys())} too many, {sorted(wanted.keys() - found.keys())} missing"
    differing = [name for name in sorted(found) if not _same(name, found[name], wanted[name])]
    return f"{differing[0] or 'the file'} differs" if differing else ""


def _same(name: str, found: bytes, wanted: bytes) -> bool:
    """The same bytes; of a manifest the same content, where blanks mean nothing, nor does a setting that is null."""
    return found == wanted or (name.endswith(".json") and _content(found) == _content(wanted))


def _content(manifest: bytes) -> Any:
    return json.loads(manifest, object_hook=lambda entries: {k: v for k, v in entries.items() if v is not None})
