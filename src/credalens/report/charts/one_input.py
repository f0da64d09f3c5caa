"""One input in charts: what every member says of each class, and the triangle of three classes."""

from __future__ import annotations

import textwrap

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.single_inputs import CORNERS, MemberView, Sample, ThreeClasses, Triangle, level_ends, to_plane
from credalens.report.charts.vega import LINE, Chart, Row, Spec, frame, layer, name_axis, percent_axis, row_name
from credalens.theme import Theme

VISIBLE_FROM = 0.01
"""Classes that no member finds this probable get no marks; all of them would lie at zero."""


def input_charts(sample: Sample, names: list[str], /) -> list[Chart]:
    """The charts of one input of an evaluation."""
    title = f"{sample.set}, row {sample.row}"
    charts = [bars_chart(sample, names, title)]
    return [*charts, simplex_chart(sample.simplex, names, title)] if sample.simplex else charts


def bars_chart(view: MemberView, names: list[str], title: str = "What every member says", /) -> Chart:
    """Each member's probability of each class, the interval, the averaged and the intersection probability."""
    classes = view.entry_names(names)
    rows = [row for place in range(len(classes)) for row in _class_rows(view, place, classes[place])]
    label = (
        f"Probabilities of each class by every member; the intersection probability predicts {names[view.predicted]}."
    )
    return Chart("bars", title, label, rows, _bars, rows=classes)


def _class_rows(view: MemberView, place: int, name: str) -> list[Row]:
    true = place < len(view.classes) and view.classes[place] == view.label
    low, high, mean, point = (float(x[place]) for x in (view.lower, view.upper, view.mean, view.probability))
    text = f"{name}: {low:.3f} to {high:.3f}; intersection {point:.3f}, averaged {mean:.3f}"
    marks: list[Row] = [{"kind": "interval", "x": low, "x2": high, "text": text}]
    if high >= VISIBLE_FROM:
        marks += [{"kind": "member", "x": x} for x in view.members[:, place].tolist()]
        marks.append({"kind": "averaged", "x": mean, "first": bool(mean == view.mean.max())})
        marks.append({"kind": "intersection", "x": point, "first": bool(point == view.probability.max())})
    return [{"place": place, "name": row_name(f"✓ {name}" if true else name), **mark} for mark in marks]


def _layer(kind: str, mark: Spec, **encoding: Spec) -> Spec:
    return layer(mark, [{"filter": f"datum.kind == '{kind}'"}], **encoding)


def _bars(theme: Theme) -> Spec:
    place = {
        "x": percent_axis("x", "probability (filled: predicted class)", domain=[0, 1]),
        "y": name_axis("name", {"field": "place"}),
    }

    def point(kind: str, shape: str, color: str, up: int) -> Spec:
        filled = {"condition": {"test": "datum.first", "value": 1}, "value": 0}
        mark = {"type": "point", "shape": shape, "size": 80, "yOffset": up, "strokeWidth": 1.8, "opacity": 1}
        return _layer(kind, mark | {"color": color, "fill": color}, **place, fillOpacity=filled)

    box = {"type": "bar", "color": theme.credal, "opacity": 0.25, "cornerRadius": 2, "minBandSize": 2}
    return frame(
        theme,
        [
            _layer("interval", box, **place, x2={"field": "x2"}),
            _layer("member", {"type": "tick", "thickness": 2, "color": theme.text, "opacity": 0.55}, **place),
            point("averaged", "diamond", theme.averaged, -6),
            point("intersection", "circle", theme.intersection, 6),
        ],
        readout={"kind": "items", "names": {}},
    )


def simplex_chart(three: ThreeClasses, names: list[str], title: str = "Three classes", /) -> Chart:
    """The triangle of three classes with members, intervals, credal set, convex hull and both point predictions."""
    triangle = Triangle(three.members)
    corners = ["others" if k is None else names[k] for k in three.classes]
    rows = _outline("edge", CORNERS) + _outline("set", triangle.polygon) + _outline("hull", triangle.hull)
    for k in range(3):
        for bound in (triangle.lower, triangle.upper):
            rows += [_at("bound", p, part=f"{k} {bound[k]}") for p in level_ends(k, float(bound[k]))]
    rows += [_at("member", point) for point in to_plane(triangle.members)]
    rows += [_at("intersection", to_plane(triangle.intersection)), _at("averaged", to_plane(triangle.averaged))]
    for k, name in enumerate(corners):
        text = "\n".join(textwrap.wrap(name, LINE)) or name
        span = f"{100 * triangle.lower[k]:.0f} to {100 * triangle.upper[k]:.0f} %"
        rows.append(_at("corner", CORNERS[k], name=f"{text}\n{span}", place=k))
    label = f"Triangle of the classes {', '.join(corners)}, with the credal set of the members."
    return Chart("simplex", title, label, rows, _simplex)


def _at(kind: str, point: NDArray[np.float64], **more: object) -> Row:
    return {"kind": kind, "x": round(float(point[0]), 5), "y": round(float(point[1]), 5), **more}


def _outline(kind: str, points: NDArray[np.float64]) -> list[Row]:
    return [_at(kind, point) for point in [*points, points[0]]]


def _simplex(theme: Theme) -> Spec:
    place = {
        "x": {"field": "x", "type": "quantitative", "axis": None, "scale": {"domain": [-0.05, 1.05], "nice": False}},
        "y": {"field": "y", "type": "quantitative", "axis": None, "scale": {"domain": [-0.26, 1.0], "nice": False}},
    }

    def line(kind: str, color: str, **mark: object) -> Spec:
        return _layer(kind, {"type": "line", "color": color, "strokeWidth": 1.4, **mark}, **place, order={"field": "n"})

    def corner(number: int, align: str, dx: int, dy: int) -> Spec:
        mark = {"type": "text", "align": align, "dx": dx, "dy": dy, "lineBreak": "\n", "lineHeight": 13}
        only = [{"filter": f"datum.kind == 'corner' && datum.place == {number}"}]
        return layer(mark, only, **place, text={"field": "name"})

    dot = {"type": "point", "filled": True, "opacity": 1}
    bound = {"type": "line", "color": theme.muted, "strokeDash": [2, 3], "strokeWidth": 1}
    return frame(
        theme,
        [
            line("edge", theme.muted, strokeWidth=1),
            _layer("bound", bound, **place, detail={"field": "part"}),
            line("set", theme.credal, fill=theme.credal, fillOpacity=0.16),
            line("hull", theme.hull, strokeDash=[5, 2]),
            _layer("member", dot | {"color": theme.text, "size": 28, "opacity": 0.6}, **place),
            _layer("intersection", dot | {"color": theme.intersection, "size": 100}, **place),
            _layer("averaged", dot | {"color": theme.averaged, "shape": "diamond", "size": 70}, **place),
            corner(0, "left", -12, 16),
            corner(1, "right", 12, 16),
            corner(2, "left", 14, -4),
        ],
        height=310,
        readout={"kind": "none", "names": {}},
    )
