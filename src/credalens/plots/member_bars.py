"""One input, class by class: what every member says, the bounds, the averaged and the intersection probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.container import Container
from numpy.typing import NDArray

from credalens.evaluation.single_inputs import MOST_BARS, view_members
from credalens.plots.axes import ABOVE, add_legend_above, as_members, as_names, name_axes, open_axes, plain
from credalens.theme import Theme

BAND = 0.8


def plot_member_bars(
    members: Any, /, *, class_names: Sequence[str], true_class: int | None = None, max_classes: int = 12,
    title: str | None = None, theme: str | Theme = "light", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Each member's probability of each class, the bounds, and both point predictions (paper, Figure ProbabilityPlot).

    Members, (members, classes), are thin bars, or dots when there are many. The filled marker of a point prediction
    is the class it predicts. With more than ``max_classes`` classes those of highest upper probability are shown, most
    probable first, and the last row adds up the rest.

    >>> weather = [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]]
    >>> ax = plot_member_bars(weather, class_names=("sun", "rain", "snow"), true_class=1)
    """
    array = as_members(members)
    names = as_names(class_names, array.shape[1], "class_names")
    if true_class is not None:
        if not 0 <= true_class < len(names):
            raise ValueError(f"true_class must be an index from 0 to {len(names) - 1}, got {true_class}.")
        names[true_class] += " (true)"
    if max_classes < 4:
        raise ValueError(f"max_classes must be at least 4, got {max_classes}.")
    view = view_members(array, true_class, most=max_classes, by_probability=True)
    rows, known = view.entry_names(names), len(view.classes)
    with open_axes(ax, theme=theme, size=(5.2, 1.3 + 0.34 * len(rows))) as (ax, look):
        entries: dict[str, Artist | Container] = {"Members": _draw_members(ax, look, view.members)}
        entries["Interval"] = ax.barh(
            np.arange(len(rows)),
            view.upper - view.lower,
            left=view.lower,
            height=BAND,
            facecolor=to_rgba(look.credal, 0.16),
            edgecolor=look.credal,
            linewidth=0.9,
            zorder=2,
        )
        # Both predictions are a little apart in every row, so that neither hides the other.
        entries["Averaged"] = _draw_point(ax, look, view.mean, known, "D", look.averaged, -0.17)
        entries["Intersection"] = _draw_point(ax, look, view.probability, known, "o", look.intersection, 0.17)
        ax.set_yticks(range(len(rows)), rows)
        for text in ax.get_yticklabels():
            plain(text).set_color(look.text)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.set_ylim(len(rows) - 0.45, -0.55)
        ax.set_xlim(-0.015, 1.015)
        name_axes(ax, look, xlabel="Probability (filled marker: predicted class)", title=title, pad=ABOVE)
        add_legend_above(ax, entries, look)
    return ax


def _draw_members(ax: Axes, look: Theme, members: NDArray[np.float64]) -> Artist | Container:
    count, rows = members.shape
    offsets = (np.arange(count) - (count - 1) / 2) / count * BAND * 0.9
    places = np.arange(rows) + offsets[:, None]
    if count <= MOST_BARS:
        height, ink = 0.62 * BAND / count, to_rgba(look.text, 0.45)
        return ax.barh(places.ravel(), members.ravel(), height=height, color=ink, zorder=3)
    return ax.scatter(members, places, s=7, color=to_rgba(look.text, 0.5), linewidth=0, zorder=3)


def _draw_point(
    ax: Axes, look: Theme, values: NDArray[np.float64], classes: int, shape: str, color: str, offset: float
) -> Artist:
    faces = [look.background] * len(values)
    faces[int(values[:classes].argmax())] = color
    size = 30 if shape == "D" else 40
    places = np.arange(len(values)) + offset
    ax.scatter(values, places, s=size, marker=shape, facecolor=faces, edgecolor=color, linewidth=1.3, zorder=5)
    return ax.scatter([], [], s=size, marker=shape, facecolor=color, edgecolor=color)
