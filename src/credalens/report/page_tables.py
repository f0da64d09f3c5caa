"""Tables for the page: sortable with mouse and keyboard, every heading explained."""

from __future__ import annotations

from html import escape

from credalens.evaluation.words.glossary import meaning
from credalens.report.svg import tag
from credalens.report.tables import Cell, Column, Table

__all__ = ["to_html"]


def to_html(table: Table, /) -> str:
    """A table whose headings are buttons that sort, and whose first cell of each row names the row."""
    head = tag("tr", "".join(_heading(column) for column in table.columns))
    body = "".join(_row(table, place) for place in range(len(table.rows)))
    content = tag("caption", escape(table.title)) + tag("thead", head) + tag("tbody", body)
    return tag(
        "div",
        tag("table", content, class_="sortable"),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=table.title,
    )


def _heading(column: Column) -> str:
    explained = meaning(column.word) if column.word else None
    button = tag("button", escape(column.title), type="button", title=explained)
    return tag("th", button, scope="col", class_="text" if column.text else None)


def _row(table: Table, place: int) -> str:
    cells = [
        _cell(cell, column, first=not n)
        for n, (cell, column) in enumerate(zip(table.rows[place], table.columns, strict=True))
    ]
    last = table.group > 1 and place % table.group == table.group - 1
    return tag("tr", "".join(cells), class_="last" if last else None)


def _cell(cell: Cell, column: Column, *, first: bool) -> str:
    text = tag("strong", escape(cell.text), title="the better one") if cell.best else escape(cell.text)
    note = tag("small", escape(cell.note), class_=cell.tone) if cell.note else ""
    return tag(
        "th" if first else "td",
        text + note,
        scope="row" if first else None,
        class_="text" if column.text else None,
        data_value="" if cell.value is None else cell.value if isinstance(cell.value, str) else repr(float(cell.value)),
    )
