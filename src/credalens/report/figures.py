"""Charts in a page, each drawn once and alive where scripts run, and charts as files.

vl-convert draws them as SVG and PNG, and gives the script that brings them to life, without a network.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import needing
from credalens.evaluation.evaluate import Evaluation
from credalens.report.charts.evaluation import named_charts
from credalens.report.charts.one_input import input_charts
from credalens.report.charts.vega import Chart
from credalens.report.tables import Cell, Column, Table
from credalens.theme import LIGHT, PAGE, Theme

with needing("vl_convert", part="the report", extra="report"):
    import vl_convert
    from markupsafe import Markup

PIXELS = 2.0
"""Of a PNG, for each unit of its chart."""
SHARES: Final = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
MARK: Final = b"\n<!-- of a credalens report -->\n"
"""By it the next report knows the pictures that it takes the place of."""


def to_svg(chart: Chart, theme: Theme = LIGHT, /) -> str:
    """A chart as SVG, with words for those who cannot see it."""
    return vl_convert.vegalite_to_svg(_titled(chart, theme))


def to_png(chart: Chart, theme: Theme = LIGHT, /) -> bytes:
    """A chart as PNG."""
    return vl_convert.vegalite_to_png(_titled(chart, theme), scale=PIXELS)


def _titled(chart: Chart, theme: Theme) -> dict[str, Any]:
    """With its title, unless the page writes it above."""
    spec = chart.spec(theme)
    title = {"text": chart.title, "color": theme.text, "anchor": "start", "fontSize": 13}
    return spec if theme is PAGE else {**spec, "title": title, "padding": 8}


@cache
def interactive_script() -> str:
    """The script that draws specifications in the browser, as one function that sets ``vegaEmbed``.

    The authors of its parts are named in ``assets/NOTICE.txt``.
    """
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"(()=>{{{bundle}}})();".replace("</script", "<\\/script").replace("<!--", "<\\!--")


def png_uri(image: NDArray[np.uint8], /) -> str:
    """An image (height, width) or (height, width, 3 or 4) of bytes as a ``data:`` address.

    >>> png_uri(np.zeros((2, 2), np.uint8))[:22]
    'data:image/png;base64,'
    """
    with needing("PIL", part="pictures in the report", extra="report"):
        from PIL import Image
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def values_table(chart: Chart, /) -> Table:
    """One column for each series at a few places of x, or one row in words for each mark."""
    readout, score = chart.draw(PAGE)["usermeta"], chart.params.get("score")
    title, in_percent = f"Values: {chart.title}", readout["x"] == "%" if "x" in readout else False
    if readout["kind"] == "items":
        texts = tuple((Cell(row["text"]),) for row in chart.values if "text" in row)
        return Table(title, (Column("Value", text=True),), texts)

    def line(name: str) -> tuple[list[float], list[float]]:
        rows = [row for row in chart.values if row["series"] == name and row.get("score") == score]
        return [row["x"] for row in rows], [row["y"] for row in rows]

    lines = {label: line(name) for name, label in readout["names"].items()}
    x = next(iter(lines.values()))[0]
    places = SHARES if in_percent else x[:: max(1, len(x) // 10)]
    columns = [(Column(readout["at"]), [Cell(f"{100 * at:g} %" if in_percent else f"{at:.3g}") for at in places])]
    for label, of_series in lines.items():
        read = np.interp(places, *of_series, right=np.nan)
        columns.append((Column(label), [Cell("–" if np.isnan(y) else f"{100 * y:.1f} %") for y in read]))
    return Table.of(title, *columns)


@dataclass(frozen=True)
class Drawn:
    """A chart of the page: the picture that a browser without scripts shows, and its values."""

    id: str
    chart: Chart
    svg: Markup
    values: Table


@dataclass
class Figures:
    """The charts that a page shows, collected while it is written."""

    specs: dict[str, Any] = field(default_factory=dict)
    charts: dict[str, Any] = field(default_factory=dict)

    def add(self, chart: Chart, /) -> str:
        """Take a chart in; scripts find it by the name that comes back."""
        name = f"chart-{len(self.charts)}"
        if chart.kind not in self.specs:
            self.specs[chart.kind] = chart.draw(PAGE)
        height = chart.height(self.specs[chart.kind])
        fields = dict.fromkeys(key for row in chart.values for key in row)
        columns = {key: _packed([row.get(key) for row in chart.values]) for key in fields}
        self.charts[name] = {"kind": chart.kind, "height": height, "params": dict(chart.params), "columns": columns}
        return name

    def draw(self, chart: Chart, /) -> Drawn:
        """Take a chart in, and draw it for browsers without scripts, and for paper."""
        name = self.add(chart)
        return Drawn(name, chart, Markup(_inline(to_svg(chart, PAGE), name)), values_table(chart))  # noqa: S704


def _packed(column: list[Any]) -> list[Any] | dict[str, list[Any]]:
    """Fractions to five digits; values that repeat as a list of all, and the place of each row's in it."""
    short = [float(f"{value:.5g}") if isinstance(value, float) else value for value in column]
    distinct = list(dict.fromkeys(short))
    places = {value: place for place, value in enumerate(distinct)}
    return {"of": distinct, "at": [places[value] for value in short]} if 2 * len(distinct) < len(short) else short


def _inline(svg: str, name: str) -> str:
    """Without addresses, fonts and long fractions, and with names of its own, numbered from zero."""
    names = {old: f"{name}-{n}" for n, old in enumerate(dict.fromkeys(re.findall(r'id="(clip\d+)"', svg)))}

    def shortened(tag: re.Match[str]) -> str:
        text = re.sub(r' (xmlns(:xlink)?|font-family|aria-[a-z]*|role)="[^"]*"', "", tag[0])
        text = re.sub(r"(?<=id=\")clip\d+|(?<=url\(#)clip\d+", lambda old: names[old[0]], text)
        return re.sub(r"\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)

    inner = re.sub(r"<[^<>]*>", shortened, svg)
    return re.sub(r'<svg([^>]*?) width="[^"]*" height="[^"]*"', r'<svg\1 aria-hidden="true"', inner, count=1)


def save_figures(
    evaluation: Evaluation, folder: Path, /, *, report: Callable[[int, int], None] = lambda done, of: None
) -> None:
    """Write all charts, and those of the first input of each group, into a new folder as PNG and SVG.

    ``report`` is called with how many are done and how many there are.
    """
    folder.mkdir()
    charts, used, seen = list(named_charts(evaluation)), set[str](), set[str]()
    for sample in evaluation.samples:
        if not seen >= set(sample.groups):
            seen |= set(sample.groups)
            charts += [(f"{c.kind} {c.title}", c) for c in input_charts(sample, evaluation.data.class_names)]
    for done, (name, chart) in enumerate(charts, start=1):
        file = folder / stem(name, used)
        file.with_suffix(".svg").write_bytes(to_svg(chart).encode() + MARK)
        file.with_suffix(".png").write_bytes(to_png(chart))
        report(done, len(charts))


def stem(name: str, used: set[str]) -> str:
    """A name that every file system takes and no other figure has."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "figure"
    free = next(text for n in range(len(used) + 1) if (text := plain if n == 0 else f"{plain}-{n + 1}") not in used)
    used.add(free)
    return free
