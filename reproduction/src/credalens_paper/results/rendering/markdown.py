"""Markdown that reads as plain text too: tables whose columns line up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

NONE: Final = "–"
"""Stands where there is no number."""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], /) -> str:
    """A Markdown table whose columns line up, so that it reads as plain text too; nothing where there are no rows.

    >>> print(markdown_table(["N", "AUROC"], [["5", "93.50"]]))
    | N | AUROC |
    |---|-------|
    | 5 | 93.50 |
    """
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in (head, *rows)]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([texts[0], rule, *texts[1:]])


def itemised(lead: str, items: Iterable[str], /) -> str:
    """A sentence, and a list below it.

    >>> print(itemised("By method:", ["DE, 93.5", "BNNR, 92.1"]))
    By method:
    <BLANKLINE>
    - DE, 93.5
    - BNNR, 92.1
    """
    return joined(lead, "\n".join(f"- {item}" for item in items))


def joined(*parts: str) -> str:
    """Paragraphs and tables, those that are not empty, with a blank line between them."""
    return "\n\n".join(part for part in parts if part)
