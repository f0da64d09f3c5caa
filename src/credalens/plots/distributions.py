"""Distributions of uncertainty scores: in-distribution against OOD, and for several J of PIA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from numpy.typing import NDArray

from credalens.checks.options import check_bins
from credalens.look import Theme
from credalens.plots.axes import (
    ABOVE,
    add_legend,
    add_legend_above,
    as_mapping,
    as_numbers,
    dash,
    marker,
    name_axes,
    open_axes,
)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def plot_uncertainty_histograms(
    id_scores: Any,
    ood_scores: Mapping[str, Any],
    /,
    *,
    bins: int = 40,
    measure: str = "Epistemic uncertainty (bits)",
    id_name: str = "In distribution",
    threshold: float | None = None,
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    """Densities of a score on ID inputs and on each OOD set, name -> scores (paper, Figures entropy_plots).

    All share the same ``bins`` of equal width, and each has area one, however many inputs it holds. ``threshold``
    marks the score above which an input counts as OOD.

    >>> ax = plot_uncertainty_histograms([0.0, 0.1, 0.2], {"SVHN": [0.3, 0.9]}, bins=10)
    """
    scores = _named_scores(id_scores, ood_scores, id_name)
    edges = _shared_edges(list(scores.values()), bins)
    mark = None if threshold is None else as_numbers([threshold], "threshold")[0]
    with open_axes(ax, theme=theme, size=(4.8, 3.4)) as (ax, look):
        entries: list[tuple[str, Artist]] = [
            (name, _draw_density(ax, look, order, np.histogram(values, edges, density=True)[0], edges))
            for order, (name, values) in enumerate(scores.items())
        ]
        if mark is not None:
            entries.append(("Threshold", ax.axvline(mark, color=look.text, linewidth=1.0, linestyle=dash(2))))
        ax.set_ylim(bottom=0)
        ax.margins(x=0.01)
        name_axes(ax, look, xlabel=measure, ylabel="Density", title=title)
        add_legend(ax, entries, look, loc="best")
    return ax


def plot_pia(
    uncertainties: Mapping[Any, Mapping[str, Any]],
    /,
    *,
    measure: str = "Epistemic uncertainty (bits)",
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    """Uncertainty for several numbers of classes kept by PIA, J -> (data set -> scores) (paper, Figure PIA).

    For each the median as a marker, a thick bar over the middle half, a thin line from the 5 % to the 95 %
    quantile.

    >>> ax = plot_pia({10: {"ID": [0.1, 0.2], "OOD": [0.4, 0.8]}, 20: {"ID": [0.1, 0.3], "OOD": [0.6, 0.9]}})
    """
    table = _scores_by_j(uncertainties)
    names = list(dict.fromkeys(name for row in table.values() for name in row))
    spread = np.linspace(-0.5, 0.5, len(names)) * min(0.6, 0.2 * (len(names) - 1))
    with open_axes(ax, theme=theme, size=(4.8, 3.4)) as (ax, look):
        entries: dict[str, Artist] = {}
        for order, name in enumerate(names):
            places = [place for place, row in enumerate(table.values()) if name in row]
            quantiles = np.array([np.quantile(table[key][name], QUANTILES) for key in table if name in table[key]])
            entries[name] = _draw_quantiles(ax, look, order, np.array(places) + spread[order], quantiles)
        ax.set_xticks(range(len(table)), list(table))
        ax.grid(visible=False, axis="x")
        ax.set_xlim(-0.6, len(table) - 0.4)
        name_axes(ax, look, xlabel="Classes kept by PIA, J", ylabel=measure, title=title, pad=ABOVE)
        add_legend_above(ax, entries, look)
    return ax


def _named_scores(id_scores: Any, ood_scores: Any, id_name: str) -> dict[str, NDArray[np.float64]]:
    named = as_mapping(ood_scores, "ood_scores", "scores of shape (n,)")
    if id_name in named:
        raise ValueError(f"{id_name!r} names both the ID scores and an OOD set. Rename one, or pass id_name.")
    ood = {name: as_numbers(values, f"scores of {name!r}") for name, values in named.items()}
    return {id_name: as_numbers(id_scores, "id_scores")} | ood


def _shared_edges(scores: list[NDArray[np.float64]], bins: int) -> NDArray[np.float64]:
    low, high = min(s.min() for s in scores), max(s.max() for s in scores)
    if high - low <= 1e-9 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5  # one value only: give it a bin of its own to stand in
    return np.linspace(low, high, check_bins(bins) + 1)


def _draw_density(
    ax: Axes, look: Theme, order: int, density: NDArray[np.float64], edges: NDArray[np.float64]
) -> Artist:
    color = look.color(order)
    fill = to_rgba(color, 0.22 if order == 0 else 0.10)
    return ax.stairs(
        density, edges, fill=True, facecolor=fill, edgecolor=color, linestyle=dash(order), linewidth=1.4, zorder=3
    )


def _scores_by_j(uncertainties: Any) -> dict[str, dict[str, NDArray[np.float64]]]:
    table = as_mapping(uncertainties, "uncertainties", "(data set -> scores)")
    return {
        key: {
            name: as_numbers(scores, f"scores of {name!r} at J = {key}")
            for name, scores in as_mapping(row, f"uncertainties[{key!r}]", "scores of shape (n,)").items()
        }
        for key, row in table.items()
    }


def _draw_quantiles(
    ax: Axes, look: Theme, order: int, x: NDArray[np.float64], quantiles: NDArray[np.float64]
) -> Artist:
    color = look.color(order)
    ax.vlines(x, quantiles[:, 0], quantiles[:, 4], color=color, linewidth=1.0, zorder=2)
    ax.vlines(x, quantiles[:, 1], quantiles[:, 3], color=to_rgba(color, 0.4), linewidth=5.0, zorder=3)
    (line,) = ax.plot(
        x,
        quantiles[:, 2],
        linestyle="none",
        marker=marker(order),
        markersize=6.0,
        color=color,
        zorder=4,
    )
    return line
