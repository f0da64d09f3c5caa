"""A chart: its values, and how they are drawn in a theme, as a Vega-Lite specification."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from credalens.core.scores import SCORES
from credalens.theme import PAGE, STROKES, Theme

Spec = dict[str, Any]
Row = dict[str, Any]
WIDTH, HEIGHT, SQUARE = 340, 230, 300
ROW_HEIGHT, TALL_ROW, LINE = 27, 40, 24
"""A row of names of one line, of up to three, and the letters of a line."""
FONT: Final = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, sans-serif"
POINT_NAMES: Final = {
    "credal": "intersection probability",
    "averaged": "averaged probability",
    "recalibrated": "recalibrated",
}
"""Series of a point prediction -> its name."""


@dataclass(frozen=True)
class Chart:
    """Values under a title, drawn by ``draw``; charts of one ``kind`` differ in their values alone.

    :ivar label: a sentence for those who cannot see it.
    :ivar values: rows of ``series``, ``x`` and ``y``, and what else the kind needs; specifications see their places as ``n``.
    :ivar params: values of the parameters of the specification that are not the usual ones.
    :ivar rows: the names of its rows, if it has any; its height follows.
    """

    kind: str
    title: str
    label: str
    values: list[Row]
    draw: Callable[[Theme], Spec]
    params: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[str] | None = None

    def spec(self, theme: Theme, /) -> Spec:
        """The whole specification, with its values."""
        drawn = self.draw(theme)
        params = [{**one, "value": self.params.get(one["name"], one.get("value"))} for one in drawn.get("params", ())]
        named = [one if one["value"] is not None else {k: v for k, v in one.items() if k != "value"} for one in params]
        rows = [{"n": n, **row} for n, row in enumerate(self.values)]
        return {**drawn, "height": self.height(drawn), "params": named, "datasets": {"values": rows}}

    def height(self, drawn: Spec, /) -> int:
        """In pixels."""
        height: int = drawn["height"]
        if self.rows is None:
            return height
        return 50 + len(self.rows) * (ROW_HEIGHT if max(map(len, self.rows), default=0) <= LINE else TALL_ROW)


def frame(theme: Theme, layers: Sequence[Spec], /, *, height: int = HEIGHT, readout: Spec, **parts: Any) -> Spec:
    """Layers that share ``values`` in the look of a theme; ``readout`` tells the page how to read values off."""
    axis = {"labelColor": theme.muted, "titleColor": theme.text, "gridColor": theme.grid, "domainColor": theme.muted}
    size = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 170}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": WIDTH,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "padding": {"left": 16, "right": 5, "top": 5, "bottom": 5},  # names are measured in another font than shown in
        "background": theme.background,
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "axis": axis | size | {"tickColor": theme.muted, "titlePadding": 6, "domain": True, "ticks": False},
            "rule": {"color": theme.muted},
            "text": {"color": theme.text, "fontSize": 12},
        },
        "data": {"name": "values"},
        "layer": list(layers),
        "usermeta": readout,
        **parts,
    }


def row_name(name: str, /) -> str:
    """A name of three lines or more, the shorter ones filled up, so that its middle is that of the row."""
    lines = textwrap.wrap(name, LINE) or [name]
    return "\n".join(["", *lines, ""] if len(lines) == 1 else [*lines, ""] if len(lines) == 2 else lines)


def name_axis(field: str, sort: Any, /) -> Spec:
    """Names of rows, one below the other."""
    axis = {"grid": False, "labelExpr": "split(datum.label, '\\n')", "labelLineHeight": 12}
    axis |= {"labelFontSize": 11, "labelOffset": -12}
    return {"field": field, "type": "nominal", "sort": sort, "title": None, "axis": axis}


def percent_axis(field: str, title: str | None, /, **scale: Any) -> Spec:
    """A share from 0 to 1, written in percent."""
    axis = {"format": "~%", "tickCount": 5}
    return {"field": field, "type": "quantitative", "title": title, "axis": axis, "scale": {"nice": False, **scale}}


VISIBLE: Final[list[Spec]] = [{"filter": "indexof(hidden, datum.series) < 0"}]
"""Leaves out the series that the reader switched off, which are in the parameter HIDDEN."""
HIDDEN: Final[Spec] = {"name": "hidden", "value": []}
ZOOM: Final[Spec] = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x", "y"], "zoom": "wheel![event.ctrlKey || event.shiftKey]"},
    "bind": "scales",
}


def line_rows(series: str, x: Sequence[float], y: Sequence[float], /, **more: Any) -> list[Row]:
    """The points of a curve."""
    return [{"series": series, **more, "x": at, "y": value} for at, value in zip(x, y, strict=True)]


def layer(mark: Spec, transform: Sequence[Spec] = VISIBLE, /, **encoding: Spec) -> Spec:
    """A mark for each row that is left, by default those of series that the reader did not switch off."""
    return {"transform": transform, "mark": mark, "encoding": encoding}


def curves(x: Spec, y: Spec, look: Spec, /, **mark: Any) -> Spec:
    """Curves through their points in order, which zoom and can be switched off."""
    line = {"type": "line", "clip": True, "strokeWidth": 2, **mark}
    return {"params": [ZOOM], **layer(line, x=x, y=y, order={"field": "n"}, **look)}


def strokes(names: Sequence[str], theme: Theme, /) -> Spec:
    """The colour and the dashes of each series by its name, the same in every chart."""
    colors = [STROKES[name].color(theme) for name in names]
    dashes = [list(STROKES[name].dash) or [1, 0] for name in names]
    return {"color": by_series(names_of(names), colors, theme), "strokeDash": by_series(names_of(names), dashes, theme)}


def by_series(names: Mapping[str, str], values: Sequence[Any], theme: Theme, /) -> Spec:
    """One value for each series, with a legend unless a page shows one for all charts."""
    written = " : ".join(f"datum.value == {json.dumps(name)} ? {json.dumps(label)}" for name, label in names.items())
    key = {"title": None, "orient": "top", "columns": 2, "labelColor": theme.text, "labelExpr": f"{written} : ''"}
    legend = None if theme is PAGE else key | {"symbolStrokeWidth": 2, "symbolSize": 300, "labelFontSize": 11}
    scale = {"domain": list(names), "range": list(values)}
    return {"field": "series", "type": "nominal", "legend": legend, "scale": scale}


def names_of(series: Sequence[str], /) -> dict[str, str]:
    """The name of each series in legends and read-outs."""
    return {name: SCORES[name].label if name in SCORES else POINT_NAMES[name] for name in series}


def guide(theme: Theme, *points: tuple[float, float]) -> Spec:
    """A dotted line of reference."""
    return {
        "data": {"values": [{"x": x, "y": y} for x, y in points]},
        "mark": {"type": "line", "clip": True, "strokeDash": [2, 3], "strokeWidth": 1, "color": theme.muted},
        "encoding": {axis: {"field": axis, "type": "quantitative"} for axis in "xy"},
    }


def rule(param: str, theme: Theme, /, axis: str = "x", **mark: Any) -> Spec:
    """A thin line across, upright by default, where a parameter says, such as the false-alarm rate of the slider."""
    return {
        "data": {"values": [{}]},
        "transform": [{"calculate": param, "as": "at"}],
        "mark": {"type": "rule", "clip": True, "color": theme.text, "strokeWidth": 1, "opacity": 0.7, **mark},
        "encoding": {axis: {"field": "at", "type": "quantitative"}},
    }
