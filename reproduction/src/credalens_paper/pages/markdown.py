"""Markdown that reads as plain text too: tables whose columns line up, and numbers with the digits of their metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from credalens_paper.experiments.paper_numbers import PaperNumber
from credalens_paper.results.records import Difference, PaperDifference, Runs

NONE: Final = "–"  # stands where there is no number
DIGITS: Final = {
    **dict.fromkeys(("halved_accepted", "halved_left", "halved_broken"), 1),
    **dict.fromkeys(("ACC", "AUROC", "AUPRC", "false_alarms", "turned_away", "accepted_ACC"), 2),
    **dict.fromkeys(("halved_turned_away", "coverage"), 2),
    **dict.fromkeys(("ECE", "NLL", "mean", "classes_in_set"), 3),
}
WORDS: Final = {"credal": "win", "classical": "loss", "equal": "tie"}


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], /) -> str:
    """A Markdown table whose columns line up; nothing where there are no rows.

    >>> print(markdown_table(["N", "AUROC"], [["5", "93.50"]]))
    | N | AUROC |
    |---|-------|
    | 5 | 93.50 |
    """
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in (head, *rows)]
    first, *others = ["| " + " | ".join(cells) + " |" for cells in padded]
    return "\n".join([first, "|" + "|".join("-" * (width + 2) for width in widths) + "|", *others])


def joined(*parts: str) -> str:
    """Paragraphs and tables, those that are not empty, with a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def value_text(value: float, metric: str, /, *, sign: str = "") -> str:
    """A value with the digits that its metric is given with, or else with four significant ones.

    >>> value_text(93.5, "AUROC"), value_text(0.0123456, "time_ms"), value_text(1.5, "ECE", sign="+")
    ('93.50', '0.01235', '+1.500')
    """
    return f"{value:{sign}.{_digits(value, metric)}f}"


def _digits(value: float, metric: str) -> int:
    if metric in DIGITS:
        return DIGITS[metric]
    return max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0


def number_text(number: Runs | PaperNumber | None, metric: str, /) -> str:
    """Mean and spread of a cell, ours or the paper's; a dash where there is none.

    >>> number_text(PaperNumber(93.5, 0.25), "AUROC"), number_text(PaperNumber(1275.2, 241.3), "cpu_ms")
    ('93.50 ± 0.25', '1275 ± 241')
    """
    if number is None:
        return NONE
    text = value_text(number.mean, metric)
    if number.std is None and metric not in DIGITS and "." in text:
        text = text.rstrip("0").rstrip(".")  # a single value is printed with its significant digits only
    return f"{text}{_spread(number, metric)}"


def difference_text(difference: Difference, metric: str, /) -> str:
    """A paired difference, its spread, and in how many runs credal is better."""
    size = f"{value_text(difference.mean, metric, sign='+')}{_spread(difference, metric)}"
    return f"{size} ({WORDS[difference.better]}, {difference.wins} of {difference.n} runs)"


def paper_difference_text(difference: PaperDifference | None, metric: str, /) -> str:
    """The paper's difference and its sign; a dash where it prints none."""
    if difference is None:
        return NONE
    return f"{value_text(difference.mean, metric, sign='+')} ({WORDS[difference.better]})"


def _spread(number: Runs | PaperNumber | Difference, metric: str) -> str:
    return "" if number.std is None else f" ± {number.std:.{_digits(number.mean, metric)}f}"
