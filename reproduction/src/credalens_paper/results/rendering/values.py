"""Numbers of result files as text: digits by metric, the spread over runs, and who has the better one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from credalens_paper.results.rendering.markdown import NONE

__all__ = ["DIGITS", "difference_text", "number_text", "paper_difference_text", "value_text"]

DIGITS: Final = {"ACC": 2, "AUROC": 2, "AUPRC": 2, "ECE": 3, "NLL": 3}
WORDS: Final = {"credal": "win", "classical": "loss", "equal": "tie"}

Result = Mapping[str, Any]


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


def number_text(found: Result | None, metric: str, /) -> str:
    """Mean and spread of a cell, ours or the paper's; a dash where there is none.

    >>> number_text({"mean": 93.5, "std": 0.25}, "AUROC"), number_text({"mean": 1275.2, "std": 241.3}, "cpu_ms")
    ('93.50 ± 0.25', '1275 ± 241')
    """
    if found is None or "mean" not in found:
        return NONE
    text = value_text(found["mean"], metric)
    if found["std"] is None and metric not in DIGITS and "." in text:
        text = text.rstrip("0").rstrip(".")  # the digits of a single value are its own
    return f"{text}{_spread(found, metric)}"


def difference_text(entry: Result, metric: str, /) -> str:
    """A paired difference, its spread, and in how many runs credal is better."""
    size = f"{value_text(entry['mean'], metric, sign='+')}{_spread(entry, metric)}"
    return f"{size} ({WORDS[entry['better']]}, {entry['wins']} of {entry['n']} runs)"


def paper_difference_text(found: Result | None, metric: str, /) -> str:
    """The paper's difference and its sign; a dash where it prints none."""
    return NONE if found is None else f"{value_text(found['mean'], metric, sign='+')} ({WORDS[found['better']]})"


def _spread(found: Result, metric: str) -> str:
    return "" if found["std"] is None else f" ± {found['std']:.{_digits(found['mean'], metric)}f}"
