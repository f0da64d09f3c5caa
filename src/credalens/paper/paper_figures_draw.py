"""Drawing the figures from what was measured: plain data in, a matplotlib Figure out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credalens.report.figures import (
    new_figure,
    plot_against_severity,
    plot_member_bars,
    plot_pia,
    plot_simplex,
    plot_simplex_panel,
    plot_uncertainty_histograms,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bars", "draw_concept", "draw_densities", "draw_pia", "draw_severities", "draw_simplex"]

Panel = Mapping[str, Any]
MEASURES = {"EU": "Epistemic uncertainty (bits)", "TU": "Total uncertainty (bits)"}


def _grid(
    panels: Sequence[Panel], columns: int, size: tuple[float, float], draw: Callable[[Panel, Axes], Any]
) -> Figure:
    """All panels on one figure; one that could not be measured says why."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(size=(size[0] * columns, size[1] * rows))
    for place, panel in enumerate(panels, start=1):
        ax = figure.add_subplot(rows, columns, place)
        if "reason" in panel:
            _say(ax, panel)
        else:
            draw(panel, ax)
    return figure


def _say(ax: Axes, panel: Panel) -> None:
    ax.set_title(panel["title"], loc="left")
    ax.text(0.5, 0.5, f"not measured:\n{panel['reason']}", ha="center", va="center", wrap=True, transform=ax.transAxes)
    ax.set_axis_off()


def draw_severities(panels: Sequence[Panel], columns: int, /) -> Figure:
    """Lines over severities: every panel has a title, a metric and series of means and deviations."""

    def draw(panel: Panel, ax: Axes) -> None:
        series = {one["name"]: (one["mean"], [s or 0.0 for s in one["std"]]) for one in panel["series"]}
        severities = panel["series"][0]["x"]
        plot_against_severity(series, panel["metric"], severities=severities, title=panel["title"], ax=ax)

    return _grid(panels, columns, (4.4, 3.3), draw)


def draw_densities(panels: Sequence[Panel], columns: int, /) -> Figure:
    """Histograms: every panel has the scores of the inside set and of each outside set."""

    def draw(panel: Panel, ax: Axes) -> None:
        plot_uncertainty_histograms(
            panel["inside"],
            panel["outside"],
            measure=MEASURES[panel["measure"]],
            id_name=panel["id_name"],
            title=panel["title"],
            ax=ax,
        )

    return _grid(panels, columns, (3.6, 2.8), draw)


def draw_pia(panels: Sequence[Panel], /) -> Figure:
    """Quantiles by J: every panel has J -> (set -> scores)."""

    def draw(panel: Panel, ax: Axes) -> None:
        plot_pia(panel["scores"], measure=MEASURES[panel["measure"]], title=panel["title"], ax=ax)

    return _grid(panels, 2, (5.2, 3.6), draw)


def draw_simplex(samples: Mapping[str, Any], labels: Sequence[str], columns: int, /) -> Figure:
    """Triangles: title -> members of three classes."""
    axes = plot_simplex_panel(samples, labels=labels, columns=columns, hull=False, zoom=True)
    return _figure(axes[0])


def draw_bars(panels: Sequence[Panel], /) -> Figure:
    """Members' probabilities, class by class, of one image in two versions."""

    def draw(panel: Panel, ax: Axes) -> None:
        plot_member_bars(
            np.asarray(panel["members"]),
            class_names=panel["class_names"],
            true_class=panel["true_class"],
            title=panel["title"],
            ax=ax,
        )

    return _grid(panels, 2, (5.6, 5.0), draw)


def draw_concept(members: Sequence[Sequence[float]], classes: Sequence[str], panels: Any, /) -> Figure:
    """The same members with different layers shown."""
    figure = new_figure(size=(5.6 * len(panels), 4.4))
    for place, (title, layers) in enumerate(panels, start=1):
        shown: dict[str, Any] = {layer: layer in layers for layer in ("intervals", "polygon", "hull", "points")}
        ax = figure.add_subplot(1, len(panels), place)
        plot_simplex(np.asarray(members), labels=classes, title=title, ax=ax, **shown)
    return figure


def _figure(ax: Axes) -> Figure:
    from matplotlib.figure import Figure

    figure = ax.figure
    if not isinstance(figure, Figure):
        raise TypeError("the panels of a figure of the paper must lie on a Figure of their own")
    return figure
