"""Compiled inner loops, one idea a file. Each has a slow, obvious twin in ``tests/oracles.py``.

Everything here works on float64 and trusts its input; validation happens once, at the border.
"""

from typing import Any

ROUNDING = 1e-13  # bits


def epistemic_part(total: Any, aleatoric: Any, /) -> Any:
    """total - aleatoric, and exactly zero where only rounding keeps the two apart, so that agreement gives ties.

    One rule for arrays and, compiled, for numbers.

    >>> epistemic_part(1.5, 1.0), epistemic_part(1.0, 1.0 + 1e-15)
    (0.5, 0.0)
    """
    difference = total - aleatoric
    return abs(difference) * (difference > ROUNDING)
