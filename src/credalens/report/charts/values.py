"""The values of a chart as a table, for screen readers and for those who want numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from credalens.look import PAGE
from credalens.report.charts.chart import Chart
from credalens.report.tables import Cell, Column, Table

SHARES: Final = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


def values_table(chart: Chart, /) -> Table:
    """One column for each series at a few places of x, or one row in words for each mark."""
    readout = chart.draw(PAGE)["usermeta"]
    if readout["kind"] == "items":
        texts = tuple((Cell(row["text"]),) for row in chart.values if "text" in row)
        return Table(f"Values: {chart.title}", (Column("Value", text=True),), texts)
    names: dict[str, str] = readout["names"]
    lines = {name: _line(chart, name) for name in names}
    x = SHARES if readout["x"] == "%" else _places(next(iter(lines.values()))[0])
    columns = (Column(readout["at"]), *(Column(name) for name in names.values()))
    read = [np.interp(x, *line, right=np.nan) for line in lines.values()]
    written = [f"{100 * at:g} %" if readout["x"] == "%" else f"{at:.3g}" for at in x]
    rows = tuple(
        (Cell(at), *(Cell("–" if np.isnan(y) else f"{100 * y:.1f} %") for y in of_place))
        for at, of_place in zip(written, np.transpose(read), strict=True)
    )
    return Table(f"Values: {chart.title}", columns, rows)


def _line(chart: Chart, name: str) -> tuple[list[float], list[float]]:
    score = chart.params.get("score")
    rows = [row for row in chart.values if row["series"] == name and row.get("score") == score]
    return [row["x"] for row in rows], [row["y"] for row in rows]


def _places(x: list[float]) -> list[float]:
    return x[:: max(1, len(x) // 10)]
