"""Opening and finishing Axes: every figure function shares this skeleton, and none needs pyplot or a window.

Arrays are checked before anything is drawn; themes are settings of matplotlib inside a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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
from credalens.checks.members import read_distributions
from credalens.checks.options import count_text, escaped
from credalens.look import DASHES, MARKERS, Theme, get_theme


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


def as_pair(
    pair: Any, what: str, parts: tuple[str, str], /, *, read: Callable[[Any, str], NDArray[np.float64]] = as_numbers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two arrays of one length, such as the x and y of a curve, each checked by ``read``."""
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"{what} must be a pair ({parts[0]}, {parts[1]}), got {type(pair).__name__}.")
    first, second = (read(part, f"{what}: {name}") for part, name in zip(pair, parts, strict=True))
    if len(first) != len(second):
        raise ValueError(f"{what}: {parts[0]} and {parts[1]} must have one length, got {len(first)} and {len(second)}.")
    return first, second


LineStyle = str | tuple[float, tuple[float, ...]]


def dash(order: int, /) -> LineStyle:
    """The line style of the series at place ``order``."""
    lengths = DASHES[order % len(DASHES)]
    return (0.0, lengths) if lengths else "solid"


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
    with mpl.rc_context(_settings(look)):
        yield look


def _settings(theme: Theme) -> Any:
    colors = {
        "figure.facecolor": theme.background,
        "axes.facecolor": theme.background,
        "axes.edgecolor": theme.muted,
        "axes.labelcolor": theme.text,
        "axes.titlecolor": theme.text,
        "text.color": theme.text,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "grid.color": theme.grid,
        "legend.edgecolor": theme.grid,
        "legend.facecolor": theme.background,
    }
    return colors | {
        "font.family": ["sans-serif"],
        "font.size": 9.0,
        "axes.labelsize": 9.0,
        "axes.titlesize": 10.0,
        "axes.titlelocation": "left",
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.linewidth": 0.7,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "legend.fontsize": 8.5,
        "legend.framealpha": 0.9,
        "legend.fancybox": False,
        "lines.linewidth": 1.6,
        "lines.markersize": 5.0,
        "lines.dash_capstyle": "round",
        "lines.solid_capstyle": "round",
        "text.usetex": False,
    }


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
