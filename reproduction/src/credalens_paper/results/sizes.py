"""Lines over numbers of members, which stand side by side however far apart they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from credalens.plots import new_figure, themed
from credalens.plots.axes import add_legend, dash, marker, name_axes, open_axes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE: Final = (4.6, 2.9)
COLUMNS: Final = 2


@dataclass(frozen=True)
class SizePanel:
    """One pair of axes: for each line the numbers of some sizes, and for each size how many runs they are means of."""

    title: str
    axis: str
    runs: Mapping[int, int]
    lines: Mapping[str, Mapping[int, float]]


def draw_sizes(panels: Sequence[SizePanel], /) -> Figure:
    """Two panels in a row, and one legend of all lines."""
    rows = -(-len(panels) // COLUMNS)
    figure = new_figure(size=(SIZE[0] * COLUMNS, SIZE[1] * rows + 0.6))
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    entries: dict[str, Artist] = {}
    for place, panel in enumerate(panels, start=1):
        entries |= _draw(figure.add_subplot(rows, COLUMNS, place), panel, names)
    with themed() as look:
        add_legend(figure, entries, look, loc="outside lower center", ncols=3)
    return figure


def _draw(axes: Axes, panel: SizePanel, names: Sequence[str]) -> dict[str, Artist]:
    entries: dict[str, Artist] = {}
    places = {size: place for place, size in enumerate(panel.runs)}
    with open_axes(axes, theme="light", size=SIZE) as (ax, look):
        for order, (name, color) in enumerate(zip(names, look.colors_of(names), strict=True)):
            style: dict[str, Any] = {"color": color, "linestyle": dash(order), "marker": marker(order)}
            for sizes in _of_equal_runs(panel, panel.lines.get(name, {})):
                numbers = [panel.lines[name][size] for size in sizes]
                (entries[name],) = ax.plot([places[size] for size in sizes], numbers, **style)
        ax.set_xticks(list(places.values()), [f"{size}\nn = {runs}" for size, runs in panel.runs.items()])
        name_axes(ax, look, xlabel="Members or samples, and runs", ylabel=panel.axis, title=panel.title)
    return entries


def _of_equal_runs(panel: SizePanel, line: Mapping[int, float]) -> Iterator[list[int]]:
    """The sizes of a line in stretches of equally many runs: means over other networks are not joined."""
    stretch: list[int] = []
    for size in (size for size in panel.runs if size in line):
        if stretch and panel.runs[size] != panel.runs[stretch[-1]]:
            yield stretch
            stretch = []
        stretch.append(size)
    if stretch:
        yield stretch
