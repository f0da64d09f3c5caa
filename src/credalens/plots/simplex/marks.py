"""The layers of the triangle, one function each: every one draws on Axes and hands back its legend entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Polygon

from credalens.evaluation.single_inputs.three_class_geometry import CORNERS, Array, Triangle, level_ends, to_plane
from credalens.look import Theme
from credalens.plots.axes import plain
from credalens.plots.style import dash, marker

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
        plain(ax.annotate(text, corner, textcoords="offset points", color=theme.text, linespacing=1.3, **place))
    # Room inside the Axes, whose limits grow to fill their box: no layout then cuts a name off.
    ax.margins(0)
    ax.update_datalim(FRAME)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()


def draw_intervals(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """For each class the parallel lines where its probability is at its lower and at its upper bound."""
    for k in range(3):
        for bound in (triangle.lower[k], triangle.upper[k]):
            (line,) = ax.plot(*level_ends(k, bound).T, color=theme.muted, linewidth=0.9, linestyle=dash(2), zorder=2)
            line.set_gid(f"interval-{k}")
    return [("Probability intervals", line)]


def draw_polygon(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """The credal set: every distribution within the intervals."""
    patch = Polygon(
        triangle.polygon(),
        facecolor=to_rgba(theme.credal, 0.18),
        edgecolor=theme.credal,
        linewidth=1.2,
        joinstyle="round",
        zorder=1,
    )
    return [("Credal set", ax.add_patch(patch))]


def draw_hull(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """The convex hull of the members, which lies within the credal set."""
    patch = Polygon(
        triangle.hull(),
        facecolor=to_rgba(theme.hull, 0.07),
        edgecolor=theme.hull,
        linewidth=1.2,
        linestyle=dash(1),
        joinstyle="round",
        zorder=3,
    )
    return [("Convex hull", ax.add_patch(patch))]


def draw_members(ax: Axes, triangle: Triangle, groups: Sequence[str], theme: Theme, /) -> Entries:
    """One dot for each member, with a marker for each group."""
    entries: Entries = []
    for order, group in enumerate(dict.fromkeys(groups)):
        chosen = to_plane(triangle.members[[name == group for name in groups]])
        dots = ax.scatter(
            chosen[:, 0],
            chosen[:, 1],
            s=20,
            marker=marker(order),
            facecolor=to_rgba(theme.text, 0.6),
            edgecolor="none",
            zorder=4,
        )
        entries.append((group, dots))
    return entries


def draw_points(ax: Axes, triangle: Triangle, theme: Theme, /) -> Entries:
    """The averaged and the intersection probability."""
    averaged = _dot(ax, theme, triangle.averaged, marker="D", s=26, color=theme.averaged, zorder=6)
    intersection = _dot(ax, theme, triangle.intersection, marker="o", s=66, color=theme.intersection, zorder=5)
    return [("Averaged", averaged), ("Intersection", intersection)]


def _dot(ax: Axes, theme: Theme, probability: Array, **options: Any) -> Artist:
    x, y = to_plane(probability)
    return ax.scatter(x, y, edgecolor=theme.background, linewidth=0.8, **options)


def frame_zoom(ax: Axes, inset: Axes, triangle: Triangle, theme: Theme, /) -> None:
    """Aim the inset at the credal set and tie it to its place in the triangle."""
    center = triangle.polygon().mean(axis=0)
    half = max(0.65 * triangle.extent, 0.005)
    inset.set(xlim=(center[0] - half, center[0] + half), ylim=(center[1] - half, center[1] + half))
    inset.set_aspect("equal", adjustable="box", anchor="NW")
    inset.set(xticks=[], yticks=[], facecolor=theme.background)
    inset.spines[:].set(visible=True, color=theme.muted, linewidth=0.8)
    ax.indicate_inset_zoom(inset, edgecolor=theme.muted, alpha=0.8)
