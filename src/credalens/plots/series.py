"""Named series: distributions of uncertainty scores, ID against OOD and for several J of PIA, and metrics against severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from numpy.typing import NDArray

from credalens.checks.arrays import refuse_values
from credalens.checks.options import check_bins, count_text
from credalens.plots import axes
from credalens.theme import Theme

SIZE = (4.8, 3.4)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_BANDS = 3
"""More shaded bands than this run together, and error bars take their place."""
MOST_TICKS = 12


def plot_uncertainty_histograms(
    id_scores: Any, ood_scores: Mapping[str, Any], /, *, bins: int = 40, measure: str = "Epistemic uncertainty (bits)",
    id_name: str = "In distribution", threshold: float | None = None,
    title: str | None = None, theme: str | Theme = "light", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Densities of a score on ID inputs and on each OOD set, name -> scores (paper, Figures entropy_plots).

    All share the same ``bins`` of equal width, and each has area one, however many inputs it holds. ``threshold``
    marks the score above which an input counts as OOD.

    >>> ax = plot_uncertainty_histograms([0.0, 0.1, 0.2], {"SVHN": [0.3, 0.9]}, bins=10)
    """
    named = axes.as_mapping(ood_scores, "ood_scores", "scores of shape (n,)")
    if id_name in named:
        raise ValueError(f"{id_name!r} names both the ID scores and an OOD set. Rename one, or pass id_name.")
    ood = {name: axes.as_numbers(values, f"scores of {name!r}") for name, values in named.items()}
    scores = {id_name: axes.as_numbers(id_scores, "id_scores")} | ood
    low, high = min(s.min() for s in scores.values()), max(s.max() for s in scores.values())
    if high - low <= 1e-9 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5  # one value only: give it a bin of its own to stand in
    edges = np.linspace(low, high, check_bins(bins) + 1)
    mark = None if threshold is None else axes.as_numbers([threshold], "threshold")[0]
    with axes.open_axes(ax, theme=theme, size=SIZE) as (ax, look):
        entries: list[tuple[str, Artist]] = []
        for order, (name, values) in enumerate(scores.items()):
            color, density = look.color(order), np.histogram(values, edges, density=True)[0]
            fill, style = to_rgba(color, 0.22 if order == 0 else 0.10), axes.dash(order)
            outline: dict[str, Any] = {"edgecolor": color, "linestyle": style, "linewidth": 1.4, "zorder": 3}
            entries.append((name, ax.stairs(density, edges, fill=True, facecolor=fill, **outline)))
        if mark is not None:
            entries.append(("Threshold", ax.axvline(mark, color=look.text, linewidth=1.0, linestyle=axes.dash(2))))
        ax.set_ylim(bottom=0)
        ax.margins(x=0.01)
        axes.name_axes(ax, look, xlabel=measure, ylabel="Density", title=title)
        axes.add_legend(ax, entries, look, loc="best")
    return ax


def plot_pia(
    uncertainties: Mapping[Any, Mapping[str, Any]], /, *, measure: str = "Epistemic uncertainty (bits)",
    title: str | None = None, theme: str | Theme = "light", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Uncertainty for several numbers of classes kept by PIA, J -> (data set -> scores) (paper, Figure PIA).

    For each the median as a marker, a thick bar over the middle half, a thin line from the 5 % to the 95 %
    quantile.

    >>> ax = plot_pia({10: {"ID": [0.1, 0.2], "OOD": [0.4, 0.8]}, 20: {"ID": [0.1, 0.3], "OOD": [0.6, 0.9]}})
    """
    table = {
        key: {
            name: axes.as_numbers(scores, f"scores of {name!r} at J = {key}")
            for name, scores in axes.as_mapping(row, f"uncertainties[{key!r}]", "scores of shape (n,)").items()
        }
        for key, row in axes.as_mapping(uncertainties, "uncertainties", "(data set -> scores)").items()
    }
    names = list(dict.fromkeys(name for row in table.values() for name in row))
    spread = np.linspace(-0.5, 0.5, len(names)) * min(0.6, 0.2 * (len(names) - 1))
    with axes.open_axes(ax, theme=theme, size=SIZE) as (ax, look):
        entries: dict[str, Artist] = {}
        for order, name in enumerate(names):
            x = np.array([place for place, row in enumerate(table.values()) if name in row]) + spread[order]
            quantiles = np.array([np.quantile(row[name], QUANTILES) for row in table.values() if name in row]).T
            color, shape = look.color(order), axes.marker(order)
            ax.vlines(x, quantiles[0], quantiles[4], color=color, linewidth=1.0, zorder=2)
            ax.vlines(x, quantiles[1], quantiles[3], color=to_rgba(color, 0.4), linewidth=5.0, zorder=3)
            (entries[name],) = ax.plot(x, quantiles[2], shape, markersize=6.0, color=color, zorder=4)
        ax.set_xticks(range(len(table)), list(table))
        ax.grid(visible=False, axis="x")
        ax.set_xlim(-0.6, len(table) - 0.4)
        axes.name_axes(ax, look, xlabel="Classes kept by PIA, J", ylabel=measure, title=title, pad=axes.ABOVE)
        axes.add_legend_above(ax, entries, look)
    return ax


def plot_against_severity(
    series: Mapping[str, Any], /, metric: str, *, severities: Sequence[float] | None = None,
    title: str | None = None, theme: str | Theme = "light", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """A metric such as ECE, NLL or AUROC against corruption severity, name -> (mean, standard deviation) over runs.

    Severities are 1, 2, ... unless given.

    >>> ax = plot_against_severity({"Averaged": ([0.03, 0.05], [0.01, 0.01])}, "ECE")
    """
    bands = {
        name: _mean_and_std(pair, f"series {name!r}")
        for name, pair in axes.as_mapping(series, "series", "(mean, std)").items()
    }
    count = len(next(iter(bands.values()))[0])
    x = axes.as_numbers(np.arange(1, count + 1) if severities is None else severities, "severities")
    if (np.diff(x) <= 0).any():
        raise ValueError(f"severities must increase, got {x.tolist()}. Sort them, without repeats.")
    for name, (mean, _) in bands.items():
        if len(mean) != len(x):
            values = count_text(len(mean), "value")
            raise ValueError(f"series {name!r} has {values}; the number of severities is {len(x)}.")
    with axes.open_axes(ax, theme=theme, size=SIZE) as (ax, look):
        entries: dict[str, Artist] = {}
        colors = look.colors_of(list(bands))
        for order, (name, (mean, std)) in enumerate(bands.items()):
            color, style = colors[order], axes.dash(order)
            (entries[name],) = ax.plot(x, mean, color=color, linestyle=style, marker=axes.marker(order), zorder=3)
            if len(bands) <= MOST_BANDS:
                ax.fill_between(x, mean - std, mean + std, color=to_rgba(color, 0.15), linewidth=0, zorder=2)
            else:
                ax.errorbar(x, mean, std, fmt="none", ecolor=color, elinewidth=0.9, capsize=2.5, zorder=2)
        if len(x) <= MOST_TICKS:
            ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.margins(x=0.03)
        axes.add_legend(ax, entries, look, loc="best")
        axes.name_axes(ax, look, xlabel="Corruption severity", ylabel=metric, title=title)
    return ax


def _mean_and_std(pair: Any, what: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"{what} must be a pair (mean, std), got {type(pair).__name__}.")
    mean, std = axes.as_numbers(pair[0], f"{what}: mean"), axes.as_numbers(pair[1], f"{what}: std")
    if len(mean) != len(std):
        raise ValueError(f"{what}: mean and std must have one length, got {len(mean)} and {len(std)}.")
    refuse_values(std < 0, std, f"std of {what}", "negative", "Pass standard deviations, at least 0.")
    return mean, std
