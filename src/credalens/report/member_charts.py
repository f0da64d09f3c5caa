"""One input in pictures: every member's bars with bounds and point predictions, and the triangle of three classes."""

from __future__ import annotations

from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.merged_classes import MOST_BARS
from credalens.evaluation.samples import MemberView, ThreeClasses
from credalens.evaluation.three_class_geometry import CORNERS, Triangle, level_ends, to_plane
from credalens.report.elements import tag
from credalens.report.svg import WIDTH, clipped

NAME_WIDTH, ROW, TOP, RIGHT = 76, 28, 4, 16
SIDE, X0, Y0 = 232.0, 34.0, 222.0
DIAMOND: Final = "M0,-4.8 L4.8,0 L0,4.8 L-4.8,0 Z"
VISIBLE = 0.01
"""Classes that no member finds this probable get no marks; all of them would lie at zero."""


def bars_chart(view: MemberView, names: list[str], /) -> str:
    """Each member's probability of each class, the interval, the averaged and the intersection probability."""
    rows = [names[k] for k in view.classes] + ([f"{view.others} others"] if view.others else [])
    parts = [_scale(len(rows))]
    for place, name in enumerate(rows):
        true = place < len(view.classes) and view.classes[place] == view.label
        parts.append(_bars_row(view, place, name, true=true))
    height = TOP + ROW * len(rows) + 24
    best = names[view.predicted]
    label = f"Probabilities of each class by every member; the intersection probability predicts {best}."
    return tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {height}", class_="bars", role="img", aria_label=label)


def _across(value: float) -> float:
    return NAME_WIDTH + value * (WIDTH - RIGHT - NAME_WIDTH)


def _scale(rows: int) -> str:
    bottom = TOP + ROW * rows
    parts = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _across(value)
        parts.append(tag("line", x1=x, x2=x, y1=TOP, y2=bottom, class_="grid"))
        parts.append(tag("text", f"{100 * value:g} %", x=x, y=bottom + 15, class_="tick", text_anchor="middle"))
    return "".join(parts)


def _bars_row(view: MemberView, place: int, name: str, *, true: bool) -> str:
    top, low, high = TOP + ROW * place, view.lower[place], view.upper[place]
    members = [row[place] for row in view.members]
    mean, point = view.mean[place], view.probability[place]
    text = f"{name}: {low:.3f} to {high:.3f}; intersection {point:.3f}, averaged {mean:.3f}; members " + ", ".join(
        f"{value:.3f}" for value in members[:MOST_BARS]
    )
    label = f"✓ {clipped(name, 9)}" if true else clipped(name, 11)
    return tag(
        "g",
        tag("title", escape(text))
        + tag("rect", x=0, y=top, width=WIDTH, height=ROW, class_="hit")
        + tag("text", escape(label), x=NAME_WIDTH - 8, y=top + ROW / 2 + 4, class_="name", text_anchor="end")
        + (_marks(view, place, top) if high >= VISIBLE else ""),
        class_="row known" if true else "row",
    )


def _marks(view: MemberView, place: int, top: int) -> str:
    interval = _interval(view.lower[place], view.upper[place], top)
    return interval + _members([row[place] for row in view.members], top) + _points(view, place, top)


def _interval(low: float, high: float, top: int) -> str:
    width = max(_across(high) - _across(low), 1.5)
    return tag("rect", x=_across(low), y=top + 3, width=width, height=ROW - 6, rx=2, class_="interval")


def _members(values: list[float], top: int) -> str:
    """Thin bars, or a dot for each where there are too many."""
    step = (ROW - 8) / len(values)
    if len(values) <= MOST_BARS:
        return "".join(
            tag(
                "rect",
                x=_across(0),
                y=top + 4 + step * (n + 0.15),
                width=max(_across(value) - _across(0), 0.8),
                height=step * 0.7,
                class_="member",
            )
            for n, value in enumerate(values)
        )
    return "".join(
        tag("circle", cx=_across(value), cy=top + 4 + step * (n + 0.5), r=1.4, class_="member")
        for n, value in enumerate(values)
    )


def _points(view: MemberView, place: int, top: int) -> str:
    """Both point predictions, a little apart; filled for the class that each predicts."""
    mean, point = view.mean[place], view.probability[place]
    averaged = "averaged filled" if mean == max(view.mean) else "averaged"
    intersection = "intersection filled" if point == max(view.probability) else "intersection"
    return tag(
        "path", d=DIAMOND, transform=f"translate({_across(mean):.1f} {top + 9})", class_=f"point {averaged}"
    ) + tag("circle", cx=_across(point), cy=top + ROW - 9, r=4.2, class_=f"point {intersection}")


def simplex_chart(three: ThreeClasses, names: list[str], /) -> str:
    """The triangle of three classes with members, intervals, credal set, convex hull and both point predictions."""
    members = np.array(three.members)
    triangle = Triangle.of(members / members.sum(axis=1, keepdims=True))
    corners = ["others" if k is None else names[k] for k in three.classes]
    parts = [_triangle(), _lines(triangle)]
    parts.append(tag("polygon", points=_path(triangle.polygon()), class_="credal-set"))
    parts.append(tag("polygon", points=_path(triangle.hull()), class_="hull"))
    parts += [tag("circle", cx=x, cy=y, r=3, class_="member") for x, y in map(_place, to_plane(triangle.members))]
    (x, y), (u, v) = _place(to_plane(triangle.intersection)), _place(to_plane(triangle.averaged))
    parts.append(tag("circle", cx=x, cy=y, r=5.2, class_="point intersection filled"))
    parts.append(tag("path", d=DIAMOND, transform=f"translate({u:.1f} {v:.1f})", class_="point averaged filled"))
    parts += _corner_names(corners, triangle)
    label = f"Triangle of the classes {', '.join(corners)}, with the credal set of the members."
    return tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} 260", class_="simplex", role="img", aria_label=label)


def _place(point: NDArray) -> tuple[float, float]:
    return X0 + SIDE * float(point[0]), Y0 - SIDE * float(point[1])


def _path(points: NDArray) -> str:
    return " ".join("{:.1f},{:.1f}".format(*_place(point)) for point in points)


def _triangle() -> str:
    grid = [_level(k, value, "grid") for value in (0.2, 0.4, 0.6, 0.8) for k in range(3)]
    return "".join(grid) + tag("polygon", points=_path(CORNERS), class_="triangle")


def _lines(triangle: Triangle) -> str:
    bounds = (triangle.lower, triangle.upper)
    return "".join(_level(k, float(bound[k]), "bound") for k in range(3) for bound in bounds)


def _level(k: int, value: float, style: str) -> str:
    (x1, y1), (x2, y2) = map(_place, level_ends(k, value))
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)


def _corner_names(names: list[str], triangle: Triangle) -> list[str]:
    """Each corner's class and its interval, below the triangle or, for the top, beside its tip."""
    places = ((2.0, Y0 + 16, "start"), (WIDTH - 2.0, Y0 + 16, "end"), (X0 + SIDE / 2 + 12, 22.0, "start"))
    drawn = []
    for k, (x, y, anchor) in enumerate(places):
        span = f"{100 * triangle.lower[k]:.0f} to {100 * triangle.upper[k]:.0f} %"
        drawn.append(tag("text", escape(clipped(names[k], 18)), x=x, y=y, class_="name", text_anchor=anchor))
        drawn.append(tag("text", span, x=x, y=y + 14, class_="tick", text_anchor=anchor))
    return drawn
