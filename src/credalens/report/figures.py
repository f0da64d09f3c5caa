"""Charts in a page, each drawn once and alive where scripts run, and charts as files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from credalens.evaluation.outcome import Evaluation
from credalens.look import PAGE
from credalens.report.charts.all import Charts, input_charts
from credalens.report.charts.chart import Chart
from credalens.report.charts.values import values_table
from credalens.report.drawing import to_png, to_svg
from credalens.report.tables import Table

MARK: Final = b"\n<!-- of a credalens report -->\n"
"""By it the next report knows the pictures that it takes the place of."""


@dataclass(frozen=True)
class Drawn:
    """A chart of the page: what a browser without scripts shows, and its values."""

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
    """Write all charts into a new folder as PNG and SVG; ``report`` is called with how many are done and how many there are."""
    folder.mkdir()
    used: set[str] = set()
    charts = [*Charts.of(evaluation).named(), *_samples(evaluation)]
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


def _samples(evaluation: Evaluation) -> list[tuple[str, Chart]]:
    """The first input of each group."""
    charts: list[tuple[str, Chart]] = []
    seen: set[str] = set()
    for sample in evaluation.samples:
        if not seen >= set(sample.groups):
            seen |= set(sample.groups)
            charts += [(f"{c.kind} {c.title}", c) for c in input_charts(sample, evaluation.data.class_names)]
    return charts
