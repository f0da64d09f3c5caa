"""Tables and words for the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Literal

from credalens.checks.options import escaped, needing
from credalens.evaluation.evaluate import Evaluation
from credalens.report.tables import Cell, Table, calibration_table, detection_table, scores_table

with needing("rich", part="a table for the terminal", extra="cli"):
    from rich import box
    from rich.console import Console, Group
    from rich.table import Table as RichTable
    from rich.text import Text

KEY = (
    "EU, TU: epistemic, total uncertainty. *: the better one. Credal is ▲ better, ▼ worse, ■ undecided. "
    "In brackets: the names of scores in code.\n"
)
WIDEST_NAME = 24
NARROWEST_NAME = 10
UNLIMITED = 10_000
COLORS = {"better": "green", "worse": "red", "undecided": "dim"}


def print_result(evaluation: Evaluation, console: Console, /) -> None:
    """The two main tables, as far as there are OOD data and labels, and the summary in words."""
    if evaluation.ood:
        console.print(to_rich(detection_table(evaluation, narrow=True), console))
        console.print(Text(KEY, style="dim"))
        console.print(to_rich(scores_table(evaluation), console))
    if evaluation.calibration is not None:
        console.print(to_rich(calibration_table(evaluation.calibration, evaluation.data.id.name), console))
    console.print(Group(*(Text(escaped(line, keep="\n")) for line in evaluation.words.lines())))


def to_text(evaluation: Evaluation, /) -> str:
    """The text that :func:`print_result` prints, without colours."""
    console = Console(file=io.StringIO(), width=100, color_system=None)
    with console.capture() as capture:
        print_result(evaluation, console)
    return capture.get()


def to_rich(table: Table, console: Console, /) -> RichTable:
    """A table for this terminal, names shown as they are written; if it is too wide, they are broken between words."""
    whole = _rich_table(table, lambda name: name)
    if whole.__rich_measure__(console, console.options.update(width=UNLIMITED)).maximum <= console.width:
        return whole
    # Each column of names may take so much that no number is broken in a terminal of this width.
    numbers = [place for place, column in enumerate(table.columns) if not column.text]
    longest = [max((len(w) for row in table.rows for w in _rich(row[k]).plain.split()), default=0) for k in numbers]
    free = console.width - sum(longest) - 2 * len(table.columns) - 2
    width = min(WIDEST_NAME, max(NARROWEST_NAME, free // max(1, len(table.columns) - len(numbers))))
    return _rich_table(table, lambda name: Text("\n").join(name.wrap(console, width, overflow="fold")))


def _rich_table(table: Table, broken: Callable[[Text], Text]) -> RichTable:
    title = Text(escaped(table.caption("*")), style="bold")
    rich_table = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        justify: Literal["left", "right"] = "left" if column.text else "right"
        rich_table.add_column(Text(escaped(column.title)), justify=justify, overflow="fold", no_wrap=column.text)
    for n, row in enumerate(table.rows, start=1):
        cells = [broken(_rich(cell)) if of.text else _rich(cell) for cell, of in zip(row, table.columns, strict=True)]
        rich_table.add_row(*cells, end_section=table.group > 1 and n % table.group == 0)
    return rich_table


def _rich(cell: Cell) -> Text:
    text = Text(f"*{escaped(cell.text)}", style="bold") if cell.best else Text(escaped(cell.text))
    if cell.note:
        text.append(f" ({cell.note})", style=COLORS.get(cell.tone or "", "dim"))
    return text
