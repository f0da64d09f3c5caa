"""How unlike the calibration data an input is: conformal p-values, and the threshold that a false-alarm rate allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.guard.binomial import conformal_quantile, least_samples, most_hits
from credalens.guard.rounding import ORDINARY, Slack

SHIFT: Final = 39  # 8192 steps for every factor of two
ROUNDING: Final = 1e-6  # of a highest value, in float32
STEPS: Final = 1 << 17  # down to 2**-16 of the largest score


def p_values(ordered: NDArray, scores: NDArray, /) -> NDArray[np.float64]:
    r"""The p-value of being like the calibration data, whose scores are ``ordered``, in the shape of ``scores``.

    .. math:: p = (1 + |\{i : s_i \ge s\}|) / (n + 1)

    For an input exchangeable with the calibration data :math:`P(p \le r) \le r` at every r, ties included.

    >>> p_values(np.array([1.0, 2.0, 2.0]), np.array([0.0, 2.0, 3.0]))
    array([1.  , 0.75, 0.25])
    """
    total = len(ordered) + 1
    return (total - np.searchsorted(ordered, scores, side="left")) / total


@dataclass(frozen=True, eq=False)
class PValueTable:
    """The same for many scores at a time, five times as fast: where those with some leading bits begin among ``ordered``.

    Bits of positive numbers are in order as integers. Negative ones, which run the other way, share the first entry.
    """

    ordered: NDArray[np.float64]
    starts: NDArray[np.int32]
    first: int

    @classmethod
    def of(cls, ordered: NDArray[np.float64], /) -> PValueTable:
        """The table of at least one calibration score."""
        leading = ordered.view(np.int64) >> SHIFT
        first = max(int(leading[-1]) - STEPS + 1, 0)
        starts = np.searchsorted(np.clip(leading - first, 0, STEPS - 1), np.arange(STEPS + 1))
        return cls(ordered, starts.astype(np.int32), first)

    def p_values(self, scores: NDArray[np.float64], /) -> NDArray[np.float64]:
        """In the shape of ``scores``."""
        from credalens.kernels.ranks import shares_above

        flat = np.ascontiguousarray(scores).reshape(-1)
        p = np.empty(flat.size)
        shares_above(self.ordered, self.starts, self.first, SHIFT, flat, flat.view(np.int64), p)
        return p.reshape(scores.shape)


def alarm_threshold(ordered: NDArray, rate: float, /) -> float:
    """The calibration score t such that s > t exactly where the p-value of s is at most ``rate``, but for rounding."""
    if len(ordered) < (least := least_samples(rate)):
        raise ValueError(
            f"{count_text(len(ordered), 'sample')} cannot promise a false-alarm rate of {rate:g} on new data; at least "
            f"{least} are needed."
        )
    return conformal_quantile(ordered, rate)


def share_at_top(scores: NDArray, rate: float, highest: float, /, slack: Slack = ORDINARY) -> float:
    """The share of the scores that have the ``highest`` value there can be, where it is the threshold of ``rate``; otherwise 0.

    Nothing is above that threshold, so that nothing is ever flagged.

    >>> share_at_top(np.array([0.1, 0.4, 1.0, 1.0]), 0.2, 1.0), share_at_top(np.array([0.1, 0.4, 0.6, 0.6]), 0.2, 1.0)
    (0.5, 0.0)
    """
    if not len(scores) or not math.isclose(top := float(scores.max()), highest, rel_tol=ROUNDING):
        return 0.0
    at_top = int((scores >= slack.lowest(top)).sum())
    return at_top / len(scores) if at_top >= max(1, most_hits(rate, len(scores) + 1)) else 0.0
