"""Drawing the figures from what was measured: plain data in, a matplotlib Figure out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credalens.plots import (
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
LEAST_DENSITY = 1e-3
MEASURES = {"EU": "Epistemic uncertainty (bits)", "TU": "Total uncertainty (bits)"}


def _grid(
    panels: Sequence[Panel], columns: int, size: tuple[float, float], draw: Callable[[Panel, Axes], Any]
) -> Figure:
    """All measured panels on one figure, in full rows where that can be; the result names the others."""
    measured = [panel for panel in panels if "reason" not in panel]
    columns = _columns(len(measured), columns)
    rows = -(-len(measured) // columns)
    figure = new_figure(size=(size[0] * columns, size[1] * rows))
    for place, panel in enumerate(measured, start=1):
        draw(panel, figure.add_subplot(rows, columns, place))
    return figure


def _columns(panels: int, most: int) -> int:
    """At most so many columns, fewer where that fills every row.

    >>> [_columns(panels, 3) for panels in (1, 3, 4, 5, 12)]
    [1, 3, 2, 3, 3]
    """
    full = [columns for columns in range(2, most + 1) if panels % columns == 0]
    return max(full, default=min(panels, most))


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
        # Most test images have hardly any uncertainty; on a linear axis their first bin hides all the others.
        ax.set_yscale("log")
        ax.set_ylim(bottom=LEAST_DENSITY)

    return _grid(panels, columns, (4.4, 3.0), draw)


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
