"""Drawing the figures from what was measured: panels in, a matplotlib Figure out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from credalens import plots
from credalens.plots import save_figure
from credalens_paper.experiments.index import file_name
from credalens_paper.experiments.presets import Preset
from credalens_paper.results.records import Panel
from credalens_paper.results.store import Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Scores = Mapping[str, Any]
Drawn = TypeVar("Drawn")
LEAST_DENSITY: Final = 1e-3
MEASURES: Final = {"EU": "Epistemic uncertainty (bits)", "TU": "Total uncertainty (bits)"}


def save_picture(picture: Figure, store: Store, label: str, preset: Preset, /) -> tuple[str, ...]:
    """Write a picture into the store in every format of the preset; returns the names of its files."""
    folder = store.folder / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"{file_name(label)}.{form}" for form in preset.formats)
    return tuple(save_figure(picture, path, dpi=preset.dpi).name for path in paths)


def _draw_grid(
    panels: Sequence[Drawn], draw: Callable[[Axes, Drawn], Any], most: int, size: tuple[float, float]
) -> Figure:
    """Panels on one figure, in at most so many columns, fewer where that fills every row."""
    full = [columns for columns in range(2, most + 1) if len(panels) % columns == 0]
    columns = max(full, default=min(len(panels), most))
    rows = -(-len(panels) // columns)
    figure = plots.new_figure(size=(size[0] * columns, size[1] * rows))
    for place, panel in enumerate(panels, start=1):
        draw(figure.add_subplot(rows, columns, place), panel)
    return figure


def draw_severities(panels: Sequence[Panel], /) -> Figure:
    """Lines over severities, of the panels that have any."""

    def draw(ax: Axes, panel: Panel) -> None:
        lines = panel.series or ()
        series = {line.name: (line.mean, [std or 0.0 for std in line.std]) for line in lines}
        plots.plot_against_severity(series, panel.metric or "", ax=ax, severities=lines[0].x, title=panel.title)

    return _draw_grid([panel for panel in panels if panel.series], draw, 3, (4.4, 3.3))


def draw_densities(panels: Sequence[tuple[Panel, Scores]], /) -> Figure:
    """Histograms of the scores of every set, the first of which is the one inside the distribution."""

    def draw(ax: Axes, drawn: tuple[Panel, Scores]) -> None:
        panel, ((id_name, inside), *outside) = drawn[0], drawn[1].items()
        options: dict[str, Any] = {"measure": MEASURES[panel.measure or ""], "id_name": id_name, "title": panel.title}
        plots.plot_uncertainty_histograms(inside, dict(outside), ax=ax, **options)
        # Most test images have hardly any uncertainty; on a linear axis their first bin hides all the others.
        ax.set_yscale("log")
        ax.set_ylim(bottom=LEAST_DENSITY)

    return _draw_grid(panels, draw, 2, (4.4, 3.0))


def draw_pia(panels: Sequence[tuple[Panel, Mapping[str, Scores]]], /) -> Figure:
    """Quantiles of the scores of every set, by the number of classes that PIA keeps."""

    def draw(ax: Axes, drawn: tuple[Panel, Mapping[str, Scores]]) -> None:
        panel, scores = drawn
        plots.plot_pia(scores, measure=MEASURES[panel.measure or ""], title=panel.title, ax=ax)

    return _draw_grid(panels, draw, 2, (5.2, 3.6))


def draw_simplex(panels: Sequence[Panel], labels: Sequence[str], columns: int, /) -> Figure:
    """Triangles. Panels that share a title, as of sizes that a preset makes equal, are drawn once."""
    samples: dict[str, Any] = {}
    for panel in panels:
        samples.setdefault(panel.title, panel.members)
    figure = plots.new_figure(size=(max(3.1 * columns, 4.4), 3.3 * -(-len(samples) // columns) + 0.6))
    plots.plot_simplex_panel(samples, labels=labels, columns=columns, hull=False, zoom=True, figure=figure)
    return figure


def draw_bars(panels: Sequence[Panel], /) -> Figure:
    """Members' probabilities, class by class, of one image in two versions."""

    def draw(ax: Axes, panel: Panel) -> None:
        about: dict[str, Any] = {"class_names": panel.class_names or (), "true_class": panel.true_class}
        plots.plot_member_bars(np.asarray(panel.members), **about, title=panel.title, ax=ax)

    return _draw_grid(panels, draw, 2, (5.6, 5.0))


def draw_estimates(panels: Sequence[Panel], /) -> Figure:
    """Dots with intervals, a row for each number; three metrics of a model beside each other."""

    def draw(ax: Axes, panel: Panel) -> None:
        estimates = (panel.estimates or ())[::-1]
        means = np.array([one.mean for one in estimates])
        reach = np.array([[one.mean - one.low, one.high - one.mean] for one in estimates]).T
        ax.errorbar(means, range(len(means)), xerr=reach.clip(min=0), fmt="o", markersize=4, capsize=2)
        ax.set_yticks(range(len(means)), [one.name for one in estimates])
        ax.set_xlabel(panel.metric or "")
        ax.set_title(panel.title)
        ax.grid(axis="x", alpha=0.3)
        if means.min() < 0 < reach[1].max() + means.max() or "less" in (panel.metric or ""):
            ax.axvline(0, linewidth=1)

    return _draw_grid(panels, draw, 3, (5.2, 3.6))


def draw_concept(members: Sequence[Sequence[float]], panels: Any, /) -> Figure:
    """The same members with different layers shown."""

    def draw(ax: Axes, panel: tuple[str, Sequence[str]]) -> None:
        title, layers = panel
        shown: dict[str, Any] = {name: name in layers for name in ("intervals", "polygon", "hull", "points")}
        plots.plot_simplex(np.asarray(members), labels=("A", "B", "D"), title=title, ax=ax, **shown)

    return _draw_grid(panels, draw, len(panels), (5.6, 4.4))
