"""Opening, finishing and saving figures: every figure function shares this skeleton, and none needs pyplot or a window.

Arrays are checked before anything is drawn; themes are settings of matplotlib inside a block.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text
from numpy.typing import NDArray

from credalens.checks.arrays import as_array, refuse_values
from credalens.checks.options import count_text, escaped
from credalens.core.members import read_distributions
from credalens.storage import atomic_file
from credalens.theme import MARKERS, Theme, dash_of, get_theme


def as_numbers(values: Any, what: str, /) -> NDArray[np.float64]:
    """``values`` as a finite, non-empty float64 array of one dimension."""
    array = as_array(values, what)[0].astype(np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{what} must have shape (n,) with n >= 1, got shape {array.shape}.")
    refuse_values(~np.isfinite(array), array, what, "not finite", "A figure shows finite numbers only.")
    return array


def as_members(members: Any, /) -> NDArray[np.float64]:
    """One input's member distributions, (members, classes), each renormalised in float64."""
    read = read_distributions(members, name="members")
    if read.batch:
        raise ValueError(
            f"a figure shows one input, members of shape (members, classes); got a batch {read.batch} of them. "
            "Choose one, such as members[:, 0]."
        )
    return read.array[:, 0]


def as_names(names: Sequence[str], count: int, what: str, /) -> list[str]:
    """``count`` names as strings."""
    if isinstance(names, str) or len(names) != count:
        came = f"the single string {names!r}" if isinstance(names, str) else count_text(len(names), "name")
        raise ValueError(f"{what} must be a sequence of {count_text(count, 'name')}, got {came}.")
    return [as_text(name) for name in names]


def as_text(name: Any, /) -> str:
    """A name as a string without characters that an SVG must not hold; line breaks are kept."""
    return escaped(name, keep="\n")


def as_mapping(named: Any, what: str, holds: str, /) -> dict[str, Any]:
    """A non-empty mapping from names, as strings, to what a figure draws for them."""
    if not isinstance(named, Mapping):
        raise TypeError(f"{what} must be a mapping name -> {holds}, got {type(named).__name__}.")
    texts = {str(name): value for name, value in named.items()}
    if not texts or len(texts) < len(named):
        fault = "two names read the same" if texts else "it is empty"
        raise ValueError(f"{what} needs one name or more, each its own -> {holds}; {fault}: {list(named)}.")
    return texts


LineStyle = str | tuple[float, tuple[float, ...]]


def dash(order: int, /) -> LineStyle:
    """The line style of the series at place ``order``."""
    return (0.0, lengths) if (lengths := dash_of(order)) else "solid"


def marker(order: int, /) -> str:
    """The marker of the series at place ``order``."""
    return MARKERS[order % len(MARKERS)]


@contextmanager
def themed(theme: str | Theme = "light", /) -> Iterator[Theme]:
    """Matplotlib's settings for a theme inside the block, and the caller's own again after it.

    >>> with themed("dark") as theme:
    ...     mpl.rcParams["text.color"] == theme.text
    True
    """
    look = get_theme(theme)
    colors: dict[str, Any] = dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), look.text)
    colors |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), look.muted)
    colors |= dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), look.background)
    colors |= dict.fromkeys(("grid.color", "legend.edgecolor"), look.grid)
    settings: Any = colors | SETTINGS
    with mpl.rc_context(settings):
        yield look


SETTINGS: Final[dict[str, Any]] = {
    "font.family": ["sans-serif"], "font.size": 9.0, "axes.labelsize": 9.0, "axes.titlesize": 10.0,
    "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "legend.fontsize": 8.5, "text.usetex": False,
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.linewidth": 0.8, "grid.linewidth": 0.7, "lines.linewidth": 1.6, "lines.markersize": 5.0,
    "lines.dash_capstyle": "round", "lines.solid_capstyle": "round", "legend.framealpha": 0.9, "legend.fancybox": False,
}  # fmt: skip
Entry = Artist | Container
ABOVE = 22.0
"""Points between Axes and title that hold one line of legend."""


def new_figure(*, size: tuple[float, float] = (4.8, 3.6), theme: str | Theme = "light") -> Figure:
    """An empty Figure in a theme, ``size`` in inches, free of pyplot's global state.

    >>> new_figure(size=(6, 3)).axes
    []
    """
    with themed(theme):
        return Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))


@contextmanager
def open_axes(ax: Axes | None, *, theme: str | Theme, size: tuple[float, float]) -> Iterator[tuple[Axes, Theme]]:
    """The given Axes, or one on a new Figure, dressed in a theme that holds inside the block."""
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be a matplotlib Axes or None, got {type(ax).__name__}.")
    with themed(theme) as look:
        opened = new_figure(size=size, theme=look).add_subplot() if ax is None else ax
        opened.set_facecolor(look.background)
        opened.tick_params(color=look.grid, labelcolor=look.muted, labelsize=8.5)
        opened.grid(True, color=look.grid, linewidth=0.7)
        opened.set_axisbelow(True)
        for side, spine in opened.spines.items():
            spine.set_visible(side in {"left", "bottom"})
            spine.set_color(look.muted)
        yield opened, look


def name_axes(
    ax: Axes, theme: Theme, /, *, xlabel: str = "", ylabel: str = "", title: str | None = None, pad: float | None = None
) -> None:
    """Write what the axes mean, in the theme's text colour and as plain text."""
    plain(ax.set_xlabel(as_text(xlabel), color=theme.text))
    plain(ax.set_ylabel(as_text(ylabel), color=theme.text))
    if title is not None:
        plain(ax.set_title(as_text(title), color=theme.text, loc="left", pad=pad))


def add_legend(
    parent: Axes | Figure | SubFigure,
    entries: Mapping[str, Entry] | Sequence[tuple[str, Entry]],
    theme: Theme,
    /,
    **options: Any,
) -> Legend | None:
    """A legend of exactly these entries, read as plain text; nothing when there are none."""
    pairs = list(entries.items()) if isinstance(entries, Mapping) else list(entries)
    if not pairs:
        return None
    names, handles = zip(*pairs, strict=True)
    # Matplotlib drops legend entries that start with an underscore; a zero-width space keeps them.
    texts = [as_text(f"\u200b{name}" if name.startswith("_") else name) for name in names]
    legend = parent.legend(list(handles), texts, **options)
    for text in legend.get_texts():
        text.set_color(theme.text)
        plain(text)
    return legend


def add_legend_above(ax: Axes, entries: Mapping[str, Entry], theme: Theme, /) -> None:
    """A legend in one line between the Axes and a title set with `pad=ABOVE`, clear of whatever is drawn."""
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.01, 0.99), "frameon": False}
    add_legend(ax, entries, theme, ncols=len(entries), handlelength=1.4, columnspacing=1.2, **place)


def plain(text: Text, /) -> Text:
    """Show a name as it is written: a dollar sign in a class name does not begin a formula."""
    text.set_parse_math(False)
    return text


METADATA: Final[dict[str, dict[str, Any]]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""The formats, each with the dates left out that would make two runs differ."""


def save_figure(fig: Figure, path: str | os.PathLike[str], /, *, dpi: float = 200) -> Path:
    """Write a figure to ``path``, in the format its suffix names: .png, .svg or .pdf.

    The file appears complete under its name, or, after an error, not at all; an older file of that name then stays.

    >>> from credalens.plots import plot_against_severity
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
