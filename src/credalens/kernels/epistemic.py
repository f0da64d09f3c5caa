"""The part of total uncertainty that is not aleatoric: one rule for arrays and, compiled, for numbers."""

from __future__ import annotations

from typing import Any

ROUNDING = 1e-13  # bits


def epistemic_part(total: Any, aleatoric: Any, /) -> Any:
    """total - aleatoric, and exactly zero where only rounding keeps the two apart, so that agreement gives ties.

    >>> epistemic_part(1.5, 1.0), epistemic_part(1.0, 1.0 + 1e-15)
    (0.5, 0.0)
    """
    difference = total - aleatoric
    return abs(difference) * (difference > ROUNDING)
