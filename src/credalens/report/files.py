"""The report as a folder of files, which appears whole or not at all, and takes the place of an older one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from credalens.evaluation.evaluate import Evaluation
from credalens.guard import Guard
from credalens.report import figures as pictures
from credalens.report.figures import MARK, stem
from credalens.report.page import now, render_html
from credalens.storage.atomic import atomic_folder
from credalens.storage.source import Progress

PAGE, RESULT, GUARD, FIGURES = "report.html", "report.json", "guard.json", "figures"
NAMES: Final = (PAGE, RESULT, GUARD)


def write_report(
    evaluation: Evaluation,
    folder: str | os.PathLike[str],
    /,
    *,
    title: str = "",
    images: Any = None,
    figures: bool = False,
    made: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write ``report.html``, ``report.json`` and ``guard.json`` into ``folder``, and all charts if ``figures``.

    ``evaluation.report(folder)`` calls it. ``title`` heads the page, ``images`` are as in :func:`credalens.evaluate`, ``made``
    are lines for its footer, by default the date. Charts are PNG and SVG files in ``folder``/figures. An older report is
    replaced with all of its files; a file of the same name that does not belong to it is an error, and others stay. After an
    error nothing has changed.
    """
    target = Path(folder)
    older = older_report(target)
    with atomic_folder(target, stale=older) as scratch:
        page = render_html(evaluation, title=title, images=images, made=[now()] if made is None else made)
        (scratch / PAGE).write_text(page, encoding="utf-8")
        (scratch / RESULT).write_text(evaluation.to_json() + "\n", encoding="utf-8")
        if evaluation.guard is not None:
            evaluation.guard.save(scratch / GUARD)
        if figures:
            report = progress or (lambda what, done, of: None)
            pictures.save_figures(evaluation, scratch / FIGURES, report=partial(report, "figures"))
        check_apart(scratch, target, older)
    return target


def older_report(folder: Path, /) -> list[str]:
    """The files of the report in a folder, which a new one takes the place of; an error where one of them is another's."""
    stored = _stored(folder / RESULT)
    is_result = str(stored.get("format", "")).startswith("credalens-report-") or {"baseline", "models"} <= stored.keys()
    is_page, is_guard = "Made by credalens " in _text(folder / PAGE), _is_guard(folder / GUARD)
    for name, is_ours in zip(NAMES, (is_page, is_result, is_guard), strict=True):
        if (folder / name).exists() and not is_ours:
            raise ValueError(_foreign(folder, name))
    # Pictures say that they are of a report; those as PNG lie beside them.
    marked = [path for path in sorted((folder / FIGURES).glob("*.svg")) if path.read_bytes().endswith(MARK)]
    pictures = [pair.relative_to(folder).as_posix() for path in marked for pair in (path, path.with_suffix(".png"))]
    names = [name for name in (*NAMES, *pictures) if (folder / name).is_file()]
    models, used = stored.get("models"), set[str]()  # of a comparison, each in a folder of its own
    folders = [stem(name, used) for name in models] if isinstance(models, dict) else []
    return [*names, *(f"{sub}/{name}" for sub in folders for name in older_report(folder / sub))]


def check_apart(scratch: Path, folder: Path, older: Collection[str], /) -> None:
    """Refuse to replace files of a folder that do not belong to its older report."""
    for path in sorted(scratch.rglob("*")):
        name = path.relative_to(scratch).as_posix()
        if path.is_file() and (folder / name).exists() and name not in older:
            raise ValueError(_foreign(folder, name))


def _foreign(folder: Path, name: str) -> str:
    return (
        f"cannot write the report into {folder}: {folder / name} is there and belongs to no report; name another folder, or "
        "move it."
    )


def _is_guard(guard: Path) -> bool:
    """Whether a guard is the one that the page beside it names; earlier pages named none, and report.json tells it apart."""
    try:
        stored_guard = Guard.load(guard)
    except (OSError, ValueError):
        return False
    if named := re.search(r'<meta name="credalens-guard" content="([0-9a-f]*)">', _text(guard.with_name(PAGE))):
        return named[1] == stored_guard.digest
    try:
        stored = _stored(guard.with_name(RESULT))
        made = (stored["recommended"]["score"], stored["settings"]["false_alarm_rate"], stored["data"]["id"]["rows"])
    except (KeyError, TypeError):
        return False
    return made == (stored_guard.score, stored_guard.false_alarm_rate, stored_guard.n) and not (
        stored_guard.promises or stored_guard.sets or stored_guard.note
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _stored(result: Path) -> dict[str, Any]:
    """The content of a report.json; empty where it is none."""
    try:
        stored = json.loads(_text(result))
    except (ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}
