"""Tables and words for the terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from credalens.report.tables import Cell, Table, calibration_table, narrow_detection_table

__all__ = ["print_result", "to_rich"]

KEY = "EU, TU: epistemic, total uncertainty. Bold: the better one. Credal is ▲ better, ▼ worse, ■ undecided.\n"
COLORS = {"better": "green", "worse": "red", "undecided": "dim"}


def print_result(result: dict[str, Any], console: Console, /) -> None:
    """The two main tables, as far as there are OOD data and labels, and the summary in words."""
    if result["ood"]:
        console.print(to_rich(narrow_detection_table(result)))
        console.print(Text(KEY, style="dim"))
    if result["calibration"] is not None:
        console.print(to_rich(calibration_table(result)))
    console.print(_sentences(result["words"]))


def to_rich(table: Table, /) -> RichTable:
    """A table for the terminal, names shown as they are written."""
    shown = RichTable(
        title=Text(table.title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for column in table.columns:
        shown.add_column(Text(column.title), justify="left" if column.text else "right", overflow="fold")
    for number, row in enumerate(table.rows, start=1):
        shown.add_row(*map(_rich, row), end_section=table.group > 1 and number % table.group == 0)
    return shown


def _rich(cell: Cell) -> Text:
    text = Text(cell.text, style="bold" if cell.best else "")
    if cell.note:
        text.append(f" ({cell.note})", style=COLORS.get(cell.tone or "", "dim"))
    return text


def _sentences(words: dict[str, Any]) -> RenderableType:
    lines = [words["headline"], words["prediction"], words["threshold"], words["members"], *words["remarks"]]
    return Group(*(Text(line) for line in lines if line))
