"""The parts that sections are made of."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from credalens.evaluation.words.glossary import meaning
from credalens.report.svg import tag

__all__ = ["cards", "chart", "choice", "legend", "meanings", "paragraph"]


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
    items = "".join(tag("li", tag("b", escape(f"{word}:")) + " " + escape(meaning(word))) for word in words)
    return tag("ul", items, class_="meanings")
