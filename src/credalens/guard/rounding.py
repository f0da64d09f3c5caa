"""Differences that rounding explains: scores of one input that differ by no more are the same score, in any precision.

The same members in float32 and float64, at once or as a summary, on a CPU or a GPU, give scores that differ in their last
digits. Promises must not hang on those, above all where many inputs share a score. So an input is called unlike, risky or more
uncertain than another only if rounding cannot explain it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from credalens.arrays import ROUNDING, ROUNDINGS, is_of_one_dtype
from credalens.core.hartley import EXACT_CLASSES, TOLERANCE
from credalens.core.scores import SCORES, information_unit

DIGITS: Final = 2.0**-17
"""Relative, and in bits or probability: four times what a GPU's float32 entropies may be off by, ten times those of a CPU."""
HALF: Final = ROUNDING["float16"]


@dataclass(frozen=True)
class Slack:
    """By how much a score may be off: ``absolute`` and a share ``relative`` of it."""

    absolute: float = 0.0
    relative: float = 0.0

    def lowest(self, scores: Any, /) -> Any:
        """The lowest scores that these may stand for."""
        return scores - self._of(scores)

    def highest(self, scores: Any, /) -> Any:
        """The highest scores that these may stand for."""
        return scores + self._of(scores)

    def _of(self, scores: Any) -> Any:
        return self.absolute + self.relative * np.minimum(np.abs(scores), np.finfo(np.float64).max / 2)


EXACT, ORDINARY = Slack(), Slack(DIGITS, DIGITS)
"""Of numbers as they are, and of scores in bits or probability whose members have at least the digits of float32."""


def slack_of(score: str, /, *, classes: int, base: float, rounding: float = 0.0) -> Slack:
    """Of a score of the catalogue; ``rounding`` is what the members' probabilities may differ by, relatively.

    >>> slack_of("total", classes=10, base=2).absolute < 1e-5
    True
    """
    unit = information_unit(base) if SCORES[score].unit == "information" else 1.0
    relative = DIGITS + ROUNDINGS * rounding
    bracket = TOLERANCE if score == "hartley" and classes > EXACT_CLASSES else 0.0
    return Slack(unit * (relative + bracket), relative)


def is_half(rounding: float, /) -> bool:
    """Whether members were in half precision, in which probabilities below 6e-8 or digits after the third are lost."""
    return rounding >= HALF


def difference(fitted: float, used: float, /) -> float:
    """The largest relative difference between probabilities of members rounded by ``fitted`` and by ``used``.

    Nothing, where all are of the same dtype: inputs that are alike were rounded alike. Of float32 and float64 it is far below
    `DIGITS`.
    """
    return 0.0 if fitted == used and is_of_one_dtype(fitted) else max(fitted, used)
