"""One input: what every member says class by class, and three classes in the triangle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import NDArray

from credalens.evaluation import single_inputs
from credalens.evaluation.single_inputs import CORNERS, Array, Triangle, level_ends, to_plane, two_and_rest
from credalens.plots import axes
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
    array = axes.as_members(members)
    names = axes.as_names(class_names, array.shape[1], "class_names")
    if true_class is not None:
        if not 0 <= true_class < len(names):
            raise ValueError(f"true_class must be an index from 0 to {len(names) - 1}, got {true_class}.")
        names[true_class] += " (true)"
    if max_classes < 4:
        raise ValueError(f"max_classes must be at least 4, got {max_classes}.")
    view = single_inputs.view_members(array, true_class, most=max_classes, by_probability=True)
    rows, known = view.entry_names(names), len(view.classes)
    with axes.open_axes(ax, theme=theme, size=(5.2, 1.3 + 0.34 * len(rows))) as (ax, look):
        entries: dict[str, Artist | Container] = {"Members": _draw_members(ax, look, view.members)}
        style: dict[str, Any] = {"facecolor": to_rgba(look.credal, 0.16), "edgecolor": look.credal, "linewidth": 0.9}
        places, widths = np.arange(len(rows)), view.upper - view.lower
        entries["Interval"] = ax.barh(places, widths, left=view.lower, height=BAND, zorder=2, **style)
        # Both predictions are a little apart in every row, so that neither hides the other.
        entries["Averaged"] = _draw_point(ax, look, view.mean, known, "D", look.averaged, -0.17)
        entries["Intersection"] = _draw_point(ax, look, view.probability, known, "o", look.intersection, 0.17)
        ax.set_yticks(range(len(rows)), rows)
        for text in ax.get_yticklabels():
            axes.plain(text).set_color(look.text)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.set_ylim(len(rows) - 0.45, -0.55)
        ax.set_xlim(-0.015, 1.015)
        axes.name_axes(ax, look, xlabel="Probability (filled marker: predicted class)", title=title, pad=axes.ABOVE)
        axes.add_legend_above(ax, entries, look)
    return ax


def _draw_members(ax: Axes, look: Theme, members: NDArray[np.float64]) -> Artist | Container:
    count, rows = members.shape
    offsets = (np.arange(count) - (count - 1) / 2) / count * BAND * 0.9
    places = np.arange(rows) + offsets[:, None]
    if count <= single_inputs.MOST_BARS:
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


Entries = list[tuple[str, Artist]]
FRAME: Final = ((-0.04, -0.19), (1.04, CORNERS[2, 1] + 0.17))

CORNER_TEXT: Final[tuple[dict[str, Any], ...]] = (
    {"xytext": (-4, -6), "ha": "left", "va": "top"},
    {"xytext": (4, -6), "ha": "right", "va": "top"},
    {"xytext": (0, 6), "ha": "center", "va": "bottom"},
)


def draw_triangle(ax: Axes, theme: Theme, /) -> None:
    """The simplex with a faint grid in steps of 0.2."""
    for value in np.linspace(0.2, 0.8, 4):
        for k in range(3):
            ax.plot(*level_ends(k, value).T, color=theme.grid, linewidth=0.6, zorder=0.5)
    ax.add_patch(Polygon(CORNERS, fill=False, edgecolor=theme.muted, linewidth=1.0, zorder=1.5))
    ax.grid(visible=False)


def draw_names(ax: Axes, triangle: Triangle, names: Sequence[str], theme: Theme, /) -> None:
    """At each corner its class and that class's interval, with room for them around the triangle."""
    for k, (corner, place) in enumerate(zip(CORNERS, CORNER_TEXT, strict=True)):
        text = f"{names[k]}\n{triangle.lower[k]:.2f} to {triangle.upper[k]:.2f}"
        axes.plain(ax.annotate(text, corner, textcoords="offset points", color=theme.text, linespacing=1.3, **place))
    # Room inside the Axes, whose limits grow to fill their box: no layout then cuts a name off.
    ax.margins(0)
    ax.update_datalim(FRAME)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()


def draw_intervals(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """For each class the parallel lines where its probability is at its lower and at its upper bound."""
    style: dict[str, Any] = {"color": theme.muted, "linewidth": 0.9, "linestyle": axes.dash(2), "zorder": 2}
    for k in range(3):
        for bound in (triangle.lower[k], triangle.upper[k]):
            (line,) = ax.plot(*level_ends(k, bound).T, **style)
            line.set_gid(f"interval-{k}")
    return [("Probability intervals", line)]


def draw_polygon(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """The credal set: every distribution within the intervals."""
    return [("Credal set", _draw_shape(ax, triangle.polygon, theme.credal, 0.18, zorder=1))]


def draw_hull(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """The convex hull of the members, which lies within the credal set."""
    return [("Convex hull", _draw_shape(ax, triangle.hull, theme.hull, 0.07, linestyle=axes.dash(1), zorder=3))]


def _draw_shape(ax: Axes, corners: Array, color: str, opacity: float, **style: Any) -> Artist:
    fill = to_rgba(color, opacity)
    return ax.add_patch(Polygon(corners, facecolor=fill, edgecolor=color, linewidth=1.2, joinstyle="round", **style))


def draw_members(ax: Axes, triangle: Triangle, groups: Sequence[str], theme: Theme, /) -> Entries:
    """One dot for each member, with a marker for each group."""
    entries: Entries = []
    style: dict[str, Any] = {"s": 20, "facecolor": to_rgba(theme.text, 0.6), "edgecolor": "none", "zorder": 4}
    for order, group in enumerate(dict.fromkeys(groups)):
        chosen = to_plane(triangle.members[[name == group for name in groups]])
        entries.append((group, ax.scatter(chosen[:, 0], chosen[:, 1], marker=axes.marker(order), **style)))
    return entries


def draw_points(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """The averaged and the intersection probability."""

    def dot(probability: Array, shape: str, size: int, color: str, zorder: int) -> Artist:
        (x, y), edge = to_plane(probability), theme.background
        return ax.scatter(x, y, marker=shape, s=size, color=color, edgecolor=edge, linewidth=0.8, zorder=zorder)

    averaged = dot(triangle.averaged, "D", 26, theme.averaged, 6)
    return [("Averaged", averaged), ("Intersection", dot(triangle.intersection, "o", 66, theme.intersection, 5))]


def frame_zoom(ax: Axes, inset: Axes, triangle: Triangle, theme: Theme, /) -> None:
    """Aim the inset at the credal set and tie it to its place in the triangle."""
    center = triangle.polygon.mean(axis=0)
    half = max(0.65 * _extent(triangle), 0.005)
    inset.set(xlim=(center[0] - half, center[0] + half), ylim=(center[1] - half, center[1] + half))
    inset.set_aspect("equal", adjustable="box", anchor="NW")
    inset.set(xticks=[], yticks=[], facecolor=theme.background)
    inset.spines[:].set(visible=True, color=theme.muted, linewidth=0.8)
    ax.indicate_inset_zoom(inset, edgecolor=theme.muted, alpha=0.8)


OPTIONAL_LAYERS: Final = {
    "points": draw_points,
    "polygon": draw_polygon,
    "hull": draw_hull,
    "intervals": draw_intervals,
}
READABLE: Final = 0.2
LEGEND: Final[dict[str, Any]] = {"frameon": False, "columnspacing": 1.6, "handlelength": 2.2}


def plot_simplex(
    members: Any, /, *, labels: Sequence[str], groups: Sequence[Any] | None = None, intervals: bool = True,
    polygon: bool = True, hull: bool = True, points: bool = True, zoom: bool = False, legend: bool = True,
    title: str | None = None, theme: str | Theme = "light", ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """One input with three classes in the probability simplex (paper, Figure ACreNNStructure).

    Members, (members, 3), are dots; a pair of parallel lines for each class marks its lower and upper
    probability; the lines enclose the credal polygon, which holds the convex hull of the members. ``groups`` names
    the group of each member (the first five, say, and the next twenty), which then has a marker of its own.
    ``zoom`` adds a magnified view where the credal set is too small to read.

    >>> weather = [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]]
    >>> ax = plot_simplex(weather, labels=("sun", "rain", "snow"))
    """
    triangle, names = _triangle(members), axes.as_names(labels, 3, "labels")
    count = len(triangle.members)
    kinds = axes.as_names(["Members"] * count if groups is None else groups, count, "groups")
    shown = {"intervals": intervals, "polygon": polygon, "hull": hull, "points": points, "zoom": zoom}
    with axes.open_axes(ax, theme=theme, size=(5.6, 4.4)) as (ax, look):
        entries = _draw(ax, triangle, names, kinds, look, shown)
        axes.name_axes(ax, look, title=title)
        if legend:
            axes.add_legend(ax, entries, look, loc="upper right", **LEGEND)
    return ax


def plot_simplex_panel(
    samples: Mapping[str, Any], /, *, labels: Sequence[str], columns: int | None = None,
    theme: str | Theme = "light", figure: Figure | None = None, **shown: bool,
) -> list[Axes]:  # fmt: skip
    """Several inputs side by side, title -> members, under one legend (paper, Figures OODEUTU...Rebuttal).

    ``columns`` breaks the row, so that six samples make the paper's two by three; ``intervals``, ``polygon``, ``hull``,
    ``points`` and ``zoom`` choose what is shown, as in ``plot_simplex``.

    >>> samples = {"agree": [[1, 0, 0]], "differ": [[1, 0, 0], [0, 1, 0]]}
    >>> left, right = plot_simplex_panel(samples, labels=("A", "B", "D"))
    """
    named = axes.as_mapping(samples, "samples", "members of shape (members, 3)")
    checked = {title: _triangle(members) for title, members in named.items()}
    names, choices = axes.as_names(labels, 3, "labels"), dict.fromkeys(OPTIONAL_LAYERS, True) | {"zoom": False}
    if unknown := sorted(set(shown) - set(choices)):
        raise TypeError(f"unknown option {unknown[0]!r}; choose among {sorted(choices)}.")
    across = len(checked) if columns is None else int(columns)
    if across < 1:
        raise ValueError(f"columns must be at least 1, got {columns}.")
    down = -(-len(checked) // across)
    figure = figure or axes.new_figure(size=(max(3.1 * across, 4.4), 3.3 * down + 0.6), theme=theme)
    panels = []
    for place, (title, triangle) in enumerate(checked.items(), start=1):
        with axes.open_axes(figure.add_subplot(down, across, place), theme=theme, size=(3, 3)) as (ax, look):
            entries = _draw(ax, triangle, names, ["Members"] * len(triangle.members), look, choices | shown)
            axes.name_axes(ax, look, title=title)
        panels.append(ax)
    with axes.themed(theme) as look:
        columns = len(entries) if across > 2 else 3
        axes.add_legend(figure, entries, look, loc="outside lower center", ncols=columns, **LEGEND)
    return panels


def merge_to_three(members: Any, /, *, classes: Sequence[int]) -> Array:
    """Keep two classes and add up the rest, so that any prediction fits in the triangle.

    The paper shows CIFAR10 this way, as airplane, automobile and others.

    >>> merge_to_three([[0.1, 0.2, 0.3, 0.4]], classes=(3, 0))
    array([[0.4, 0.1, 0.5]])
    """
    array = axes.as_members(members)
    count, pair = array.shape[1], tuple(int(k) for k in classes)
    if count < 3:
        raise ValueError(f"members must have at least 3 classes to merge the rest, got {count}.")
    if len(pair) != 2 or len(set(pair)) != 2 or not all(0 <= k < count for k in pair):
        raise ValueError(f"classes must be two different indices from 0 to {count - 1}, got {tuple(classes)}.")
    return two_and_rest(array, *pair)


def _triangle(members: Any) -> Triangle:
    array = axes.as_members(members)
    if array.shape[1] != 3:
        raise ValueError(
            f"a triangle shows 3 classes, got {array.shape[1]}. Keep two of them and add up the rest with "
            "merge_to_three(members, classes=(i, j))."
        )
    return Triangle(array)


def _extent(triangle: Triangle) -> float:
    """The widest interval: the side of the smallest triangle of this shape that holds the credal set."""
    return float((triangle.upper - triangle.lower).max())


def _draw(
    ax: Axes, triangle: Triangle, names: list[str], kinds: list[str], look: Theme, shown: Mapping[str, bool]
) -> Entries:
    draw_names(ax, triangle, names, look)
    entries = _draw_layers(ax, triangle, kinds, look, shown)
    if shown["zoom"] and _extent(triangle) < READABLE:
        inset = ax.inset_axes((0.0, 0.62, 0.28, 0.34))
        _draw_layers(inset, triangle, kinds, look, shown)
        frame_zoom(ax, inset, triangle, look)
    return entries


def _draw_layers(ax: Axes, triangle: Triangle, kinds: list[str], look: Theme, shown: Mapping[str, bool]) -> Entries:
    draw_triangle(ax, look)
    entries = draw_members(ax, triangle, kinds, look)
    for name, draw in OPTIONAL_LAYERS.items():
        if shown[name]:
            entries += draw(ax, triangle, look)
    return entries
