"""The layers of the triangle, one function each: every one draws on Axes and hands back its legend entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Polygon

from credalens.core.intervals import intersection_probability
from credalens.plots.axes import plain
from credalens.plots.inputs import as_members
from credalens.plots.simplex.geometry import CORNERS, Array, convex_hull, credal_polygon, to_plane
from credalens.plots.style import Theme, dash, marker

Entries = list[tuple[str, Artist]]
FRAME: Final = ((-0.04, -0.19), (1.04, CORNERS[2, 1] + 0.17))

CORNER_TEXT: Final[tuple[dict[str, Any], ...]] = (
    {"xytext": (-4, -6), "ha": "left", "va": "top"},
    {"xytext": (4, -6), "ha": "right", "va": "top"},
    {"xytext": (0, 6), "ha": "center", "va": "bottom"},
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The member distributions of one input over three classes, (members, 3), and their bounds."""

    members: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, members: Any, /) -> Sample:
        """Check the members and take their bounds."""
        array = as_members(members)
        if array.shape[1] != 3:
            raise ValueError(
                f"a triangle shows 3 classes, got {array.shape[1]}. Keep two of them and add up the rest with "
                "merge_to_three(members, classes=(i, j))."
            )
        return cls(array, array.min(axis=0), array.max(axis=0))

    @property
    def intersection(self) -> Array:
        """The intersection probability of the bounds."""
        return np.asarray(intersection_probability(self.lower, self.upper))

    @property
    def extent(self) -> float:
        """The widest interval: the side of the smallest triangle of this shape that holds the credal set."""
        return float((self.upper - self.lower).max())


def draw_triangle(ax: Axes, theme: Theme, /) -> None:
    """The simplex with a faint grid in steps of 0.2."""
    for value in np.linspace(0.2, 0.8, 4):
        for k in range(3):
            ax.plot(*_level(k, value).T, color=theme.grid, linewidth=0.6, zorder=0.5)
    ax.add_patch(Polygon(CORNERS, fill=False, edgecolor=theme.muted, linewidth=1.0, zorder=1.5))
    ax.grid(visible=False)


def draw_names(ax: Axes, sample: Sample, names: Sequence[str], theme: Theme, /) -> None:
    """At each corner its class and that class's interval, with room for them around the triangle."""
    for k, (corner, place) in enumerate(zip(CORNERS, CORNER_TEXT, strict=True)):
        text = f"{names[k]}\n{sample.lower[k]:.2f} to {sample.upper[k]:.2f}"
        plain(ax.annotate(text, corner, textcoords="offset points", color=theme.text, linespacing=1.3, **place))
    # Room inside the Axes, whose limits grow to fill their box: no layout then cuts a name off.
    ax.margins(0)
    ax.update_datalim(FRAME)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()


def draw_intervals(ax: Axes, sample: Sample, theme: Theme, /) -> Entries:
    """For each class the parallel lines where its probability is at its lower and at its upper bound."""
    for k in range(3):
        for bound in (sample.lower[k], sample.upper[k]):
            (line,) = ax.plot(*_level(k, bound).T, color=theme.muted, linewidth=0.9, linestyle=dash(2), zorder=2)
            line.set_gid(f"interval-{k}")
    return [("Probability intervals", line)]


def draw_polygon(ax: Axes, sample: Sample, theme: Theme, /) -> Entries:
    """The credal set: every distribution within the intervals."""
    patch = Polygon(
        to_plane(credal_polygon(sample.lower, sample.upper)),
        facecolor=to_rgba(theme.credal, 0.18),
        edgecolor=theme.credal,
        linewidth=1.2,
        joinstyle="round",
        zorder=1,
    )
    return [("Credal set", ax.add_patch(patch))]


def draw_hull(ax: Axes, sample: Sample, theme: Theme, /) -> Entries:
    """The convex hull of the members, which lies within the credal set."""
    corners = convex_hull(to_plane(sample.members))
    patch = Polygon(
        corners,
        facecolor=to_rgba(theme.hull, 0.07),
        edgecolor=theme.hull,
        linewidth=1.2,
        linestyle=dash(1),
        joinstyle="round",
        zorder=3,
    )
    return [("Convex hull", ax.add_patch(patch))]


def draw_members(ax: Axes, sample: Sample, groups: Sequence[str], theme: Theme, /) -> Entries:
    """One dot for each member, with a marker for each group."""
    entries: Entries = []
    for order, group in enumerate(dict.fromkeys(groups)):
        chosen = to_plane(sample.members[[name == group for name in groups]])
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


def draw_points(ax: Axes, sample: Sample, theme: Theme, /) -> Entries:
    """The averaged and the intersection probability."""
    averaged = _dot(ax, theme, sample.members.mean(axis=0), marker="D", s=26, color=theme.averaged, zorder=6)
    intersection = _dot(ax, theme, sample.intersection, marker="o", s=66, color=theme.intersection, zorder=5)
    return [("Averaged", averaged), ("Intersection", intersection)]


def _dot(ax: Axes, theme: Theme, probability: Array, **options: Any) -> Artist:
    x, y = to_plane(probability)
    return ax.scatter(x, y, edgecolor=theme.background, linewidth=0.8, **options)


def frame_zoom(ax: Axes, inset: Axes, sample: Sample, theme: Theme, /) -> None:
    """Aim the inset at the credal set and tie it to its place in the triangle."""
    center = to_plane(credal_polygon(sample.lower, sample.upper).mean(axis=0))
    half = max(0.65 * sample.extent, 0.005)
    inset.set(xlim=(center[0] - half, center[0] + half), ylim=(center[1] - half, center[1] + half))
    inset.set_aspect("equal", adjustable="box", anchor="NW")
    inset.set(xticks=[], yticks=[], facecolor=theme.background)
    inset.spines[:].set(visible=True, color=theme.muted, linewidth=0.8)
    ax.indicate_inset_zoom(inset, edgecolor=theme.muted, alpha=0.8)


def _level(k: int, value: float) -> Array:
    """The ends of the segment of the triangle where class k has probability `value`."""
    ends = np.zeros((2, 3))
    ends[:, k] = value
    ends[0, (k + 1) % 3] = ends[1, (k + 2) % 3] = 1 - value
    return to_plane(ends)
