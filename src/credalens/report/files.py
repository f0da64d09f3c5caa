"""The report as a folder of files, which appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from credalens.evaluation.outcome import Evaluation
from credalens.report.footer import now
from credalens.report.page import render_html
from credalens.storage.atomic_folder import atomic_folder
from credalens.storage.source import Progress


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
    replaced; other files in the folder stay. After an error nothing has changed.
    """
    target = Path(folder)
    with atomic_folder(target) as scratch:
        page = render_html(evaluation, title=title, images=images, made=[now()] if made is None else made)
        (scratch / "report.html").write_text(page, encoding="utf-8")
        (scratch / "report.json").write_text(evaluation.to_json() + "\n", encoding="utf-8")
        if evaluation.guard is not None:
            evaluation.guard.save(scratch / "guard.json")
        if figures:
            _save_figures(evaluation, scratch / "figures", progress)
    return target


def _save_figures(evaluation: Evaluation, folder: Path, progress: Progress | None) -> None:
    from credalens.report.figures import save_figures

    report = progress or (lambda what, done, of: None)
    save_figures(evaluation, folder, report=lambda done, of: report("figures", done, of))
