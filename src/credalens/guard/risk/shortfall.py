"""Why an error rate cannot be promised: how far the data are from it, and how many would be needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from credalens.checks.counted import count_text
from credalens.guard.binomial import binomial_tail
from credalens.guard.risk.control import TOLERANT, Limits, Tested

MOST = 2**20  # accepted inputs that one might still label


def shortfall(tested: Sequence[Tested], limits: Limits, score: str, /) -> str:
    """What to say about the risk that is furthest from its promise."""
    few = [entry for entry in tested if entry.most < entry.fewest]
    worst = max(few or tested, key=lambda entry: entry.fewest - entry.most if few else entry.bound(entry.first))
    wanted = f"{worst.risk.name} of at most {worst.risk.max_error:.3g} with {worst.confidence:.3g} confidence"
    if few:
        return (
            f"{count_text(limits.of, 'calibration input')} cannot promise an {wanted}: it concerns at most "
            f"{count_text(worst.most, 'accepted one')}, and at least {worst.fewest:,} are needed, even if none of them is an "
            "error."
        )
    accepted, errors = int(worst.accepted[worst.first]), int(worst.errors[worst.first])
    return (
        f"no limit of {score!r} can promise an {wanted}: already the strictest that is tested has "
        f"{count_text(errors, 'error')} among {accepted:,} of the {limits.of:,} calibration inputs, which promise "
        f"{worst.bound(worst.first):.3g}. {_advice(worst, errors / accepted, limits.of / worst.most)}"
    )


def inputs_needed(rate: float, max_error: float, confidence: float, /) -> int | None:
    """About how many accepted inputs promise ``max_error`` where the share of errors is ``rate``; None where none do.

    >>> inputs_needed(0.0, 0.02, 0.95), inputs_needed(0.02, 0.02, 0.95)
    (149, None)
    """

    def enough(n: int) -> bool:
        return binomial_tail(math.ceil(rate * n), n, max_error) <= 1 - confidence

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if rate >= max_error or high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _advice(tested: Tested, rate: float, inputs_each: float) -> str:
    needed = inputs_needed(rate, tested.risk.max_error, tested.confidence)
    if needed is None:
        return "More data will hardly help: allow more errors, or use another score."
    share = 4 if needed <= TOLERANT * tested.fewest else 10  # of all inputs, where the first limit is then
    return f"With that share of errors about {math.ceil(share * needed * inputs_each):,} calibration inputs are needed."
