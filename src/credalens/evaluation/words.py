"""Names of measures, and how numbers and intervals are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from credalens.evaluation.results import TOO_FEW, Comparison, Interval

SHORT: Final = {"epistemic": "EU", "total": "TU", "aleatoric": "AU"}
RULE_NAMES: Final = {
    "interval_dominance": "interval dominance",
    "maximality": "maximality",
    "e_admissibility": "E-admissibility",
}
SIGNS: Final = {"better": "▲", "worse": "▼", "undecided": "■"}
GROUPS: Final = {
    "uncertain": "most uncertain",
    "contradictory": "most contradictory",
    "missed": "OOD, with least doubt",
    "wrong": "wrong, with least doubt",
}
MINUS, SPACE = "\u2212", "\u00a0"  # the space keeps a number and its unit on one line


def percent(value: float, digits: int = 1, /) -> str:
    """A fraction as a percentage; a dash for NaN.

    >>> percent(0.9387).split(), percent(math.nan)
    (['93.9', '%'], '–')
    """
    return "–" if math.isnan(value) else f"{100 * value:z.{digits}f}{SPACE}%".replace("-", MINUS)


def points(value: float, /) -> str:
    """A difference of two fractions, with its sign, in percentage points.

    >>> points(-0.0105), points(-1e-9)
    ('−1.05', '+0.00')
    """
    return f"{100 * value:+z.2f}".replace("-", MINUS)


def number(value: float, digits: int = 3, /) -> str:
    """A plain number with a typographic minus; a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:z.{digits}f}".replace("-", MINUS)


def interval_text(interval: Interval, /) -> str:
    """An interval of a share in percent."""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def gain_text(gain: Comparison, write: Callable[[float], str] = points, /) -> str:
    """The interval of a difference, in percentage points by default; that there is none, for too few samples."""
    return TOO_FEW if gain.method == TOO_FEW else f"{write(gain.low)} to {write(gain.high)}"


def unit(base: float, /) -> str:
    """The unit in which uncertainty is measured."""
    return {2.0: "bits", math.e: "nats"}.get(base, f"units of log {base:g}")


def joined(texts: Iterable[str], /) -> str:
    """An enumeration.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *rest, last = texts
    return f"{', '.join(rest)} and {last}" if rest else last
