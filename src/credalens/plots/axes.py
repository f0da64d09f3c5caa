"""Opening and finishing Axes: every figure function shares this skeleton, and none needs pyplot or a window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text

from credalens.look import Theme, get_theme
from credalens.plots.arguments import as_text
from credalens.plots.style import themed

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
        dress(opened, look)
        yield opened, look


def dress(ax: Axes, theme: str | Theme, /) -> None:
    """Give Axes made elsewhere the colours of a theme."""
    look = get_theme(theme)
    ax.set_facecolor(look.background)
    ax.tick_params(color=look.grid, labelcolor=look.muted, labelsize=8.5)
    ax.grid(True, color=look.grid, linewidth=0.7)
    ax.set_axisbelow(True)
    for side, spine in ax.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(look.muted)


def name_axes(
    ax: Axes,
    theme: Theme,
    /,
    *,
    xlabel: str = "",
    ylabel: str = "",
    title: str | None = None,
    pad: float | None = None,
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
    legend = parent.legend(list(handles), [_shown(name) for name in names], **options)
    for text in legend.get_texts():
        text.set_color(theme.text)
        plain(text)
    return legend


def add_legend_above(ax: Axes, entries: Mapping[str, Entry], theme: Theme, /) -> None:
    """A legend in one line between the Axes and a title set with `pad=ABOVE`, clear of whatever is drawn."""
    add_legend(
        ax,
        entries,
        theme,
        loc="lower right",
        bbox_to_anchor=(1.01, 0.99),
        ncols=len(entries),
        frameon=False,
        handlelength=1.4,
        columnspacing=1.2,
    )


def plain(text: Text, /) -> Text:
    """Show a name as it is written: a dollar sign in a class name does not begin a formula."""
    text.set_parse_math(False)
    return text


def _shown(name: str) -> str:
    # Matplotlib drops legend entries that start with an underscore; a zero-width space keeps them.
    return as_text(f"\u200b{name}" if name.startswith("_") else name)
