"""HTML, element by element: what sections are made of, and tables that sort with mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from credalens.evaluation.words.glossary import GLOSSARY
from credalens.report.tables import Cell, Column, Table


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; values are escaped, None is left out, ``_`` in a name becomes ``-`` and a final one is dropped.

    >>> tag("text", "a &lt; b", class_="tick", data_x=3)
    '<text class="tick" data-x="3">a &lt; b</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{content}</{name}>"


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def paragraph(text: str, /, **attributes: object) -> str:
    """Plain text as a paragraph."""
    return tag("p", escape(text), **attributes)


def chart(title: str, drawing: str, /, **attributes: object) -> str:
    """A drawing under its title."""
    return tag("figure", tag("figcaption", escape(title)) + drawing, class_="chart", **attributes)


def legend(entries: dict[str, str], /) -> str:
    """Line samples, style -> name."""
    items = "".join(
        tag("li", f'<svg viewBox="0 0 30 10" aria-hidden="true">{_sample(style)}</svg>{escape(name)}')
        for style, name in entries.items()
    )
    return tag("ul", items, class_="legend")


def _sample(style: str) -> str:
    area = f'<rect x="1" y="1" width="28" height="8" class="area {style}"/>' if style in ("id", "ood") else ""
    return f'{area}<line x1="1" y1="5" x2="29" y2="5" class="line {style}"/>'


def cards(items: Iterable[str], /, **attributes: object) -> str:
    """Charts or findings side by side, as many in a row as there is room for."""
    return tag("div", "".join(items), class_="cards", **attributes)


def choice(name: str, options: dict[str, str], /) -> str:
    """Radio buttons that the page turns into a filter."""
    buttons = "".join(
        f'<label><input type="radio" name="{name}" value="{value}"{" checked" if not place else ""}>{escape(text)}</label>'
        for place, (value, text) in enumerate(options.items())
    )
    return f'<fieldset class="choice" data-for="{name}"><legend>Show</legend>{buttons}</fieldset>'


def meanings(*words: str) -> str:
    """One sentence for each of these words."""
    items = "".join(tag("li", tag("b", escape(f"{word}:")) + " " + escape(GLOSSARY[word])) for word in words)
    return tag("ul", items, class_="meanings")


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
    explained = GLOSSARY[column.word] if column.word else None
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
