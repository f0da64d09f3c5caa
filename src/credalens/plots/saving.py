"""Figures as PNG, SVG or PDF: the same bytes for the same figure, and a file is written whole or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from credalens.storage import atomic_file

METADATA: Final[dict[str, dict[str, Any]]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""The formats, each with the dates left out that would make two runs differ."""


def save_figure(fig: Figure, path: str | os.PathLike[str], /, *, dpi: float = 200) -> Path:
    """Write a figure to ``path``, in the format its suffix names: .png, .svg or .pdf.

    The file appears complete under its name, or, after an error, not at all; an older file of that name then stays.

    >>> from credalens.plots.trends import plot_against_severity
    >>> ax = plot_against_severity({"Averaged": ([0.03, 0.05], [0.01, 0.01])}, "ECE")
    >>> save_figure(ax.figure, "ece.svg")  # doctest: +SKIP
    PosixPath('ece.svg')
    """
    target = Path(path)
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in METADATA:
        raise ValueError(f"path must end in .png, .svg or .pdf, got {str(target)!r}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(target.parent)!r} does not exist: create it, then save the figure.")
    with atomic_file(target) as file:
        file.write(render_figure(fig, suffix, dpi=dpi))
    return target


def render_figure(fig: Figure, form: str, /, *, dpi: float = 200) -> bytes:
    """A figure as the bytes of a "png", "svg" or "pdf" file: to send it, or to write it whole.

    Letters are drawn as shapes in SVG and embedded in PDF, so the file looks the same wherever it is opened.
    """
    if not isinstance(fig, Figure):
        raise TypeError(f"fig must be a matplotlib Figure, got {type(fig).__name__}. From Axes take ax.figure.")
    if form not in METADATA:
        raise ValueError(f"form must be one of {sorted(METADATA)}, got {form!r}.")
    buffer = io.BytesIO()
    settings: Any = {"svg.hashsalt": "credalens", "svg.fonttype": "path", "pdf.fonttype": 42}
    with mpl.rc_context(settings):
        fig.savefig(buffer, format=form, dpi=dpi, metadata=METADATA[form])
    return buffer.getvalue()
