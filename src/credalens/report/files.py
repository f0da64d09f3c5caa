"""The report as a folder of files that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.sources import Progress
from credalens.report.page import render_html

__all__ = ["atomic_folder", "check_folder", "write_report"]


def write_report(
    evaluation: Evaluation,
    folder: str | os.PathLike[str],
    /,
    *,
    title: str = "",
    images: Mapping[str, Any] | None = None,
    figures: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write ``report.html``, ``report.json`` and ``threshold.json`` into ``folder``, and all charts if ``figures``.

    Charts are PNG and SVG files in ``folder``/figures. An older report is replaced; other files in the folder stay.
    After an error nothing has changed.
    """
    target = Path(folder)
    with atomic_folder(target) as scratch:
        page = render_html(evaluation, title=title, images=images)
        (scratch / "report.html").write_text(page, encoding="utf-8")
        (scratch / "report.json").write_text(evaluation.to_json() + "\n", encoding="utf-8")
        evaluation.threshold.save(scratch / "threshold.json")
        if figures:
            _save_figures(evaluation, scratch / "figures", progress)
    return target


def _save_figures(evaluation: Evaluation, folder: Path, progress: Progress | None) -> None:
    from credalens.report.figures import save_figures

    report = progress or (lambda what, done, of: None)
    save_figures(evaluation, folder, report=lambda done, of: report("figures", done, of))


def check_folder(path: str | os.PathLike[str], /) -> Path:
    """A path that a folder can be written to: its parent exists, and it is no file."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"cannot write {target}: it is a file; name a folder.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: there is no folder {target.parent}; create it first.")
    return target


@contextmanager
def atomic_folder(path: str | os.PathLike[str], /) -> Iterator[Path]:
    """A new folder to write into, whose files take their places under ``path`` only when the block ends without an error."""
    target = check_folder(path)
    scratch = target.parent / f".{target.name}.{uuid.uuid4().hex}.partial"
    try:
        with _naming_target(target):
            scratch.mkdir()
            yield scratch
            _settle(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _naming_target(target: Path) -> Iterator[None]:
    """Name the folder that was asked for, not the one that is written in its place."""
    try:
        yield
    except OSError as error:
        raise OSError(f"cannot write {target}: {error.strerror or error}.") from error


def _settle(scratch: Path, target: Path) -> None:
    """Put all bytes on disk, then rename the folder, or the files one by one where there is a folder already."""
    written = sorted(path for path in scratch.rglob("*") if path.is_file())
    for path in written:
        with path.open("rb") as file:
            os.fsync(file.fileno())
    if not target.exists():
        scratch.rename(target)
        return
    for path in written:
        place = target / path.relative_to(scratch)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
