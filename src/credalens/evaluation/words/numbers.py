"""Numbers as they are written in sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["SPACE", "joined", "number", "percent", "points", "unit"]

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


def unit(base: float, /) -> str:
    """What uncertainty is measured in."""
    return {2.0: "bits", math.e: "nats"}.get(base, f"units of log {base:g}")


def joined(texts: Iterable[str], /) -> str:
    """An enumeration.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *rest, last = texts
    return f"{', '.join(rest)} and {last}" if rest else last
