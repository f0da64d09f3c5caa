"""Which point prediction to use, the intersection probability or the mean, by NLL and ECE on labelled data.

The rule: the intersection probability stays unless the mean is clearly better in NLL or ECE and clearly worse in neither;
"clearly" is a paired test with Holm's correction for the two, and a difference that is not `NEGLIGIBLE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from credalens.evaluation.judged_rows import JudgedRows, paired_ece, paired_nll
from credalens.evaluation.results import ByMethod, Result
from credalens.evaluation.statistics.bootstrap import Resampling
from credalens.evaluation.statistics.holm import holm

NEGLIGIBLE: Final = 1e-3
"""A difference below it, a tenth of a percentage point of ECE or a thousandth of NLL, is of no account."""


@dataclass(frozen=True)
class PointDifference(Result):
    """A metric of the intersection probability minus that of the mean, with its interval; negative is a gain."""

    metric: str
    difference: float
    low: float
    high: float
    p_value: float
    """Two-sided, with Holm's correction for both metrics."""

    def is_clear(self, level: float, /) -> bool:
        """Whether the difference is neither chance nor negligible."""
        return self.p_value < 1 - level and abs(self.difference) >= NEGLIGIBLE


@dataclass(frozen=True)
class PointChoice(Result):
    """The point prediction to use, and what speaks for it."""

    prediction: Literal["intersection", "mean"]
    nll: PointDifference
    ece: PointDifference
    level: float

    @property
    def clear(self) -> list[PointDifference]:
        """The metrics that clearly speak for either of the two."""
        return [difference for difference in (self.nll, self.ece) if difference.is_clear(self.level)]


def choose_point(judged: ByMethod[JudgedRows], /, *, bins: int, resampling: Resampling) -> PointChoice:
    """Apply the rule above to the intersection probability and the mean."""
    nll = paired_nll(judged.credal, judged.classical, level=resampling.level)
    ece = paired_ece(judged.credal, judged.classical, bins=bins, resampling=resampling)
    p_values = holm({"NLL": nll.p_value, "ECE": ece.p_value})
    differences = [
        PointDifference(metric, *numbers[:3], p_values[metric]) for metric, numbers in (("NLL", nll), ("ECE", ece))
    ]
    clear = [d.difference for d in differences if d.is_clear(resampling.level)]
    worse = bool(clear) and min(clear) > 0
    of_nll, of_ece = differences
    return PointChoice("mean" if worse else "intersection", of_nll, of_ece, resampling.level)
