"""Dots on rows: several series of numbers for each of some names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from credalens.look import Theme
from credalens.plots import new_figure, themed
from credalens.plots.axes import add_legend, marker, name_axes, open_axes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE: Final = (6.4, 0.36)
"""Inches of a panel, and of each of its rows."""
LEAST_ROWS: Final = 3
"""As high as so many rows is a panel with fewer."""
APART: Final = 0.19
"""Between two series of a row, so that their dots do not hide each other; less where a row is full."""
FULL: Final = 0.7
"""The part of a row's height that its series take at most."""
ROOM: Final = 4
"""Series that a row has room for; with more it is higher."""
AREA: Final = 32.0
"""Of a dot for one number, where all are different; equal numbers are one larger dot, and then all are smaller."""


@dataclass(frozen=True)
class DotPanel:
    """One pair of axes.

    :ivar rows: the numbers of each series by the name of a row, the first row on top.
    :ivar strokes: a number across some rows: their mean, or what is promised.
    :ivar is_span: whether the dots of a row are two ends, on one line that joins them.
    :ivar is_whole: whether the numbers are whole ones.
    :ivar reach: what the axis shows at least.
    """

    title: str
    axis: str
    rows: Mapping[str, Mapping[str, Sequence[float]]]
    strokes: Mapping[str, float] = field(default_factory=dict)
    is_span: bool = False
    is_whole: bool = False
    reach: tuple[float, ...] = ()

    @property
    def series(self) -> list[str]:
        """The series that have numbers."""
        return list(dict.fromkeys(name for row in self.rows.values() for name, values in row.items() if values))

    @property
    def most_equal(self) -> int:
        """How many numbers of a series in a row are the same at most."""
        return max(max(Counter(values).values(), default=1) for row in self.rows.values() for values in row.values())


def draw_dots(panels: Sequence[DotPanel], /) -> Figure:
    """Panels below each other, with one legend of all their series."""
    series = list(dict.fromkeys(name for panel in panels for name in panel.series))
    higher = max(1.0, len(series) / ROOM)
    heights = [higher * max(LEAST_ROWS, len(panel.rows)) + 2 for panel in panels]
    figure = new_figure(size=(SIZE[0], SIZE[1] * (sum(heights) + 1)))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    entries: dict[str, Artist] = {}
    for panel, ax in zip(panels, axes, strict=True):
        entries |= _draw(ax, panel, series)
    with themed() as look:
        add_legend(figure, entries, look, loc="outside lower center", ncols=2)
    return figure


def _draw(axes: Axes, panel: DotPanel, series: Sequence[str]) -> dict[str, Artist]:
    """Draw a panel, each series as in the others, and return what the legend names."""
    entries: dict[str, Artist] = {}
    step = min(APART, FULL / max(1, len(series) - 1))
    with open_axes(axes, theme="light", size=SIZE) as (ax, look):
        _draw_strokes(ax, panel, look)
        for order, (name, color) in enumerate(zip(series, look.colors_of(series), strict=True)):
            if name in panel.series:
                apart = 0.0 if panel.is_span else step * (order - (len(series) - 1) / 2)
                places, x, counts = zip(*_counted(panel, name), strict=True)
                areas = AREA * np.array(counts) / panel.most_equal**0.5
                style: dict[str, Any] = {"color": color, "marker": marker(order), "linewidths": 0, "zorder": 3}
                entries[name] = ax.scatter(x, np.add(places, apart), areas, **style)
        ax.set_yticks(range(len(panel.rows)), list(panel.rows))
        ax.set_ylim(len(panel.rows) - 0.4, -0.6)
        ax.update_datalim([(x, 0) for x in panel.reach])
        ax.locator_params(axis="x", integer=panel.is_whole)
        name_axes(ax, look, xlabel=panel.axis, title=panel.title)
    return entries


def _counted(panel: DotPanel, name: str) -> Iterator[tuple[int, float, int]]:
    """Every number of a series: the place of its row, the number, and how often it is there."""
    for place, row in enumerate(panel.rows.values()):
        yield from ((place, value, count) for value, count in Counter(row.get(name, ())).items())


def _draw_strokes(ax: Axes, panel: DotPanel, look: Theme) -> None:
    """What joins the ends of a row, and the stroke across it, both behind the dots."""
    for place, (name, row) in enumerate(panel.rows.items()):
        if panel.is_span:
            ends = [value for values in row.values() for value in values]
            ax.plot([min(ends), max(ends)], [place, place], color=look.muted, linewidth=1.2, zorder=2)
        if name in panel.strokes:
            ax.plot([panel.strokes[name]] * 2, [place - 0.42, place + 0.42], color=look.text, linewidth=2.0, zorder=2)
