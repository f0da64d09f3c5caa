"""The standard error of false alarms that are a mean over halves."""

from __future__ import annotations

import math

from credalens_paper.measures.guarding import RATE


def standard_error(halves: int, inputs: int, /) -> float:
    """In per cent, as a mean over so many halves of the inputs: the fitted half and the judged vary."""
    return 100 * math.sqrt(RATE * (1 - RATE) * (2 / inputs + 2 / inputs) / halves)
