"""One input, class by class: what every member says, the bounds, the averaged and the intersection probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.container import Container
from numpy.typing import NDArray

from credalens.evaluation.single_inputs import MOST_BARS, FewClasses, few_classes
from credalens.look import Theme
from credalens.plots.axes import ABOVE, add_legend_above, as_members, as_names, name_axes, open_axes, plain

Array = NDArray[np.float64]
Entries = dict[str, Artist | Container]
BAND = 0.8


class _Rows(NamedTuple):
    """What stands in each row of the figure."""

    names: list[str]
    few: FewClasses


def plot_member_bars(
    members: Any,
    /,
    *,
    class_names: Sequence[str],
    true_class: int | None = None,
    max_classes: int = 12,
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    """Each member's probability of each class, the bounds, and both point predictions (paper, Figure ProbabilityPlot).

    Members, (members, classes), are thin bars, or dots when there are many. The filled marker of a point prediction
    is the class it predicts. With more than ``max_classes`` classes those of highest upper probability are shown, most
    probable first, and the last row adds up the rest.

    >>> weather = [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]]
    >>> ax = plot_member_bars(weather, class_names=("sun", "rain", "snow"), true_class=1)
    """
    rows = _rows(as_members(members), class_names, true_class, max_classes)
    with open_axes(ax, theme=theme, size=(5.2, 1.3 + 0.34 * len(rows.names))) as (ax, look):
        entries = _draw_members(ax, look, rows) | _draw_bounds(ax, look, rows) | _draw_points(ax, look, rows)
        _name_rows(ax, look, rows.names)
        name_axes(ax, look, xlabel="Probability (filled marker: predicted class)", title=title, pad=ABOVE)
        add_legend_above(ax, entries, look)
    return ax


def _rows(members: Array, class_names: Sequence[str], true_class: int | None, max_classes: int) -> _Rows:
    names = as_names(class_names, members.shape[1], "class_names")
    if true_class is not None:
        if not 0 <= true_class < len(names):
            raise ValueError(f"true_class must be an index from 0 to {len(names) - 1}, got {true_class}.")
        names[true_class] += " (true)"
    if max_classes < 4:
        raise ValueError(f"max_classes must be at least 4, got {max_classes}.")
    few = few_classes(members, most=max_classes, true_class=true_class, by_probability=True)
    rest = [f"{few.rest} others"] if few.rest else []
    return _Rows([names[k] for k in few.classes] + rest, few)


def _draw_bounds(ax: Axes, look: Theme, rows: _Rows) -> Entries:
    places = np.arange(len(rows.names))
    bars = ax.barh(
        places,
        rows.few.upper - rows.few.lower,
        left=rows.few.lower,
        height=BAND,
        facecolor=to_rgba(look.credal, 0.16),
        edgecolor=look.credal,
        linewidth=0.9,
        zorder=2,
    )
    return {"Interval": bars}


def _draw_members(ax: Axes, look: Theme, rows: _Rows) -> Entries:
    count = len(rows.few.members)
    offsets = (np.arange(count) - (count - 1) / 2) / count * BAND * 0.9
    places = np.arange(len(rows.names)) + offsets[:, None]
    if count <= MOST_BARS:
        height, ink = 0.62 * BAND / count, to_rgba(look.text, 0.45)
        bars = ax.barh(places.ravel(), rows.few.members.ravel(), height=height, color=ink, zorder=3)
        return {"Members": bars}
    dots = ax.scatter(rows.few.members, places, s=7, color=to_rgba(look.text, 0.5), linewidth=0, zorder=3)
    return {"Members": dots}


def _draw_points(ax: Axes, look: Theme, rows: _Rows) -> Entries:
    """Both predictions in every row, a little apart so that neither hides the other."""
    return {
        "Averaged": _draw_point(ax, look, rows.few.mean, len(rows.few.classes), "D", look.averaged, -0.17),
        "Intersection": _draw_point(
            ax, look, rows.few.probability, len(rows.few.classes), "o", look.intersection, 0.17
        ),
    }


def _draw_point(ax: Axes, look: Theme, values: Array, classes: int, shape: str, color: str, offset: float) -> Artist:
    places = np.arange(len(values)) + offset
    faces = [look.background] * len(values)
    faces[int(values[:classes].argmax())] = color
    size = 30 if shape == "D" else 40
    ax.scatter(values, places, s=size, marker=shape, facecolor=faces, edgecolor=color, linewidth=1.3, zorder=5)
    return ax.scatter([], [], s=size, marker=shape, facecolor=color, edgecolor=color)


def _name_rows(ax: Axes, look: Theme, names: list[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    for text in ax.get_yticklabels():
        plain(text).set_color(look.text)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_xlim(-0.015, 1.015)
