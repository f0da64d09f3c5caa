"""Metrics against corruption severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from numpy.typing import NDArray

from credalens.checks.arrays import refuse_values
from credalens.checks.options import count_text
from credalens.look import Theme
from credalens.plots.axes import add_legend, as_mapping, as_numbers, as_pair, dash, marker, name_axes, open_axes

Array = NDArray[np.float64]
Bands = dict[str, tuple[Array, Array]]

SIZE = (4.8, 3.4)
MOST_BANDS = 3
"""More shaded bands than this run together, and error bars take their place."""
MOST_TICKS = 12


def plot_against_severity(
    series: Mapping[str, Any],
    /,
    metric: str,
    *,
    severities: Sequence[float] | None = None,
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    """A metric such as ECE, NLL or AUROC against corruption severity, name -> (mean, standard deviation) over runs.

    Severities are 1, 2, ... unless given.

    >>> ax = plot_against_severity({"Averaged": ([0.03, 0.05], [0.01, 0.01])}, "ECE")
    """
    bands = _read_bands(series)
    count = len(next(iter(bands.values()))[0])
    x = _read_places(np.arange(1, count + 1) if severities is None else severities, bands, "severities")
    with open_axes(ax, theme=theme, size=SIZE) as (ax, look):
        _draw(ax, look, x, bands)
        name_axes(ax, look, xlabel="Corruption severity", ylabel=metric, title=title)
    return ax


def _read_bands(series: Any) -> Bands:
    named = as_mapping(series, "series", "(mean, std)")
    bands = {name: as_pair(pair, f"series {name!r}", ("mean", "std")) for name, pair in named.items()}
    for name, (_, std) in bands.items():
        refuse_values(std < 0, std, f"std of series {name!r}", "negative", "Pass standard deviations, at least 0.")
    return bands


def _read_places(values: Any, bands: Bands, what: str) -> Array:
    x = as_numbers(values, what)
    if (np.diff(x) <= 0).any():
        raise ValueError(f"{what} must increase, got {x.tolist()}. Sort them, without repeats.")
    for name, (mean, _) in bands.items():
        if len(mean) != len(x):
            raise ValueError(f"series {name!r} has {count_text(len(mean), 'value')}; the number of {what} is {len(x)}.")
    return x


def _draw(ax: Axes, look: Theme, x: Array, bands: Bands) -> None:
    entries: dict[str, Artist] = {}
    colors = look.colors_of(list(bands))
    for order, (name, (mean, std)) in enumerate(bands.items()):
        color = colors[order]
        (entries[name],) = ax.plot(x, mean, color=color, linestyle=dash(order), marker=marker(order), zorder=3)
        if len(bands) <= MOST_BANDS:
            shade = to_rgba(color, 0.15)
            ax.fill_between(x, mean - std, mean + std, color=shade, linewidth=0, zorder=2)
        else:
            ax.errorbar(x, mean, std, fmt="none", ecolor=color, elinewidth=0.9, capsize=2.5, zorder=2)
    if len(x) <= MOST_TICKS:
        ax.set_xticks(x, [f"{value:g}" for value in x])
    ax.margins(x=0.03)
    add_legend(ax, entries, look, loc="best")
