"""Themes for matplotlib: its settings inside a block, line styles and markers by place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl

from credalens.look import DASHES, MARKERS, Theme, get_theme

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
