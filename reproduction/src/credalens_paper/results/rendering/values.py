"""Numbers of result files as text: digits by metric, the spread over runs, and which side is better."""

from __future__ import annotations

import math
from typing import Final

from credalens_paper.experiments.paper_numbers import PaperNumber
from credalens_paper.results.records import Difference, PaperDifference, Runs
from credalens_paper.results.rendering.markdown import NONE

DIGITS: Final = {
    "ACC": 2,
    "AUROC": 2,
    "AUPRC": 2,
    "ECE": 3,
    "NLL": 3,
    "mean": 3,
    "false_alarms": 2,
    "turned_away": 2,
    "accepted_ACC": 2,
    "halved_accepted": 1,
    "halved_left": 1,
    "halved_broken": 1,
    "halved_turned_away": 2,
    "coverage": 2,
    "classes_in_set": 3,
}
WORDS: Final = {"credal": "win", "classical": "loss", "equal": "tie"}


def value_text(value: float, metric: str, /, *, sign: str = "") -> str:
    """A value with the digits that its metric is given with.

    >>> value_text(93.5, "AUROC"), value_text(0.0123456, "time_ms"), value_text(1.5, "ECE", sign="+")
    ('93.50', '0.01235', '+1.500')
    """
    return f"{value:{sign}.{_digits(value, metric)}f}"


def _digits(value: float, metric: str) -> int:
    """Decimals: those of the metric, or as many as four significant digits need."""
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
