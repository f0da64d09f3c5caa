"""The look of every figure: two themes, one colour-blind-safe palette, dashes and markers that work without colour.

The hues follow Okabe and Ito; lightness is tuned so that every colour has a contrast of at least 3:1 with its
background and any two differ by at least 18 in CIELAB for normal, protan, deutan and tritan vision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl

Dash = str | tuple[float, tuple[float, ...]]

DASHES: Final[tuple[Dash, ...]] = (
    "solid",
    (0.0, (5.0, 1.8)),
    (0.0, (1.2, 1.4)),
    (0.0, (6.0, 1.6, 1.2, 1.6)),
    (0.0, (9.0, 2.2)),
)
MARKERS: Final[tuple[str, ...]] = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by role; `palette` is the order in which named series take theirs."""

    name: str
    background: str
    text: str
    muted: str
    grid: str
    palette: tuple[str, ...]

    @property
    def credal(self) -> str:
        """The colour of the credal set and its bounds."""
        return self.palette[0]

    @property
    def intersection(self) -> str:
        """The colour of the intersection probability (red in the paper)."""
        return self.palette[1]

    @property
    def averaged(self) -> str:
        """The colour of the averaged probability."""
        return self.palette[2]

    @property
    def hull(self) -> str:
        """The colour of the convex hull of the members."""
        return self.palette[3]

    def color(self, order: int, /) -> str:
        """The colour of the series at place `order`."""
        return self.palette[order % len(self.palette)]


LIGHT: Final = Theme(
    name="light",
    background="#FFFFFF",
    text="#1B1F24",
    muted="#5F6670",
    grid="#E3E6EA",
    palette=("#1F4E9E", "#D55E00", "#009E6A", "#93306E", "#6A86EA", "#1B1F24"),
)
DARK: Final = Theme(
    name="dark",
    background="#14181F",
    text="#E8EBEF",
    muted="#9AA4B2",
    grid="#2B323C",
    palette=("#58B7FD", "#F2793A", "#17966F", "#DD95C4", "#7A6FEA", "#E8EBEF"),
)
THEMES: Final[dict[str, Theme]] = {theme.name: theme for theme in (LIGHT, DARK)}


def get_theme(theme: str | Theme, /) -> Theme:
    """The theme of that name; a `Theme` is handed back as it is.

    >>> get_theme("dark").background
    '#14181F'
    """
    if isinstance(theme, Theme):
        return theme
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {sorted(THEMES)} or a Theme, got {theme!r}.")
    return THEMES[theme]


def dash(order: int, /) -> Dash:
    """The line style of the series at place `order`."""
    return DASHES[order % len(DASHES)]


def marker(order: int, /) -> str:
    """The marker of the series at place `order`."""
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
