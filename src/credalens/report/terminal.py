"""Tables and words for the terminal."""

from __future__ import annotations

import io

from credalens.checks.control_characters import escaped
from credalens.checks.packages import needing
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.words.verdicts import Summary
from credalens.report.tables import Cell, Table, calibration_table, narrow_detection_table, scores_table

with needing("rich", part="a table for the terminal", extra="cli"):
    from rich import box
    from rich.console import Console, Group, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

KEY = (
    "EU, TU: epistemic, total uncertainty. *: the better one. Credal is ▲ better, ▼ worse, ■ undecided. "
    "In brackets: the names of scores in code.\n"
)
WIDEST_NAME = 24
COLORS = {"better": "green", "worse": "red", "undecided": "dim"}


def print_result(evaluation: Evaluation, console: Console, /) -> None:
    """The two main tables, as far as there are OOD data and labels, and the summary in words."""
    if evaluation.ood:
        console.print(to_rich(narrow_detection_table(evaluation)))
        console.print(Text(KEY, style="dim"))
        console.print(to_rich(scores_table(evaluation)))
    if evaluation.calibration is not None:
        console.print(to_rich(calibration_table(evaluation.calibration, evaluation.data.id.name)))
    console.print(_sentences(evaluation.words))


def to_text(evaluation: Evaluation, /) -> str:
    """What :func:`print_result` prints, without colours."""
    console = Console(file=io.StringIO(), width=100, color_system=None)
    with console.capture() as capture:
        print_result(evaluation, console)
    return capture.get()


def to_rich(table: Table, /) -> RichTable:
    """A table for the terminal, names shown as they are written."""
    rich_table = RichTable(
        title=Text(escaped(table.caption("*")), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for place, column in enumerate(table.columns):
        widest = max((len(row[place].text + row[place].note) for row in table.rows), default=0)
        rich_table.add_column(
            Text(escaped(column.title)),
            justify="left" if column.text else "right",
            overflow="fold",
            no_wrap=place == 0 and widest <= WIDEST_NAME,  # else the widest column is narrowed first
        )
    for number, row in enumerate(table.rows, start=1):
        rich_table.add_row(*map(_rich, row), end_section=table.group > 1 and number % table.group == 0)
    return rich_table


def _rich(cell: Cell) -> Text:
    text = Text(f"*{escaped(cell.text)}", style="bold") if cell.best else Text(escaped(cell.text))
    if cell.note:
        text.append(f" ({cell.note})", style=COLORS.get(cell.tone or "", "dim"))
    return text


def _sentences(words: Summary) -> RenderableType:
    lines = [words.headline, words.prediction, words.rejection, words.threshold, words.members, *words.remarks]
    return Group(*(Text(escaped(line, keep="\n")) for line in lines if line))
