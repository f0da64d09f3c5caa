"""Why an error rate cannot be promised: how far the data are from it, and how many would be needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.counted import count_text
from credalens.guard.binomial import binomial_interval
from credalens.guard.risk.control import Limits, Plan, Tested, last_passed, plan_of

MOST: Final = 1_000
"""Times as many inputs that one might still label."""


def shortfall(tested: Sequence[Tested], limits: Limits, plan: Plan | None, score: str, /) -> str:
    """What to say about the risk that is furthest from its promise."""
    few = [entry for entry in tested if entry.most < entry.fewest()]
    if few:
        worst = max(few, key=lambda entry: entry.fewest() - entry.most)
        return (
            f"{count_text(limits.of, 'calibration input')} cannot promise an {_wanted(worst)}: it concerns at most "
            f"{count_text(worst.most, 'accepted one')}, and at least {worst.fewest():,} are needed, even if none of them is an "
            "error."
        )
    if plan is None:
        return (
            f"{count_text(limits.of, 'calibration input')} cannot promise all {len(tested)} error rates at once: no limit "
            "accepts enough inputs of each. Promise fewer of them, or take more data."
        )
    worst = max(tested, key=lambda entry: entry.bound(max(plan.starts)))
    seen = " and ".join(_errors_at(worst, *start) for start in sorted(plan.starts.items()))
    return (
        f"no limit of {score!r} can promise an {_wanted(worst)}: among the most certain of the {limits.of:,} calibration "
        f"inputs there are {seen}. {_advice(tested, limits)}"
    )


def _wanted(tested: Tested) -> str:
    return f"{tested.risk.name} of at most {tested.risk.max_error:.3g} with {tested.confidence:.3g} confidence"


def _errors_at(tested: Tested, place: int, share: float) -> str:
    accepted, errors = int(tested.accepted[place]), int(tested.errors[place])
    return f"{count_text(errors, 'error')} in {accepted:,} (enough for {tested.bound(place, share):.3g})"


def _advice(tested: Sequence[Tested], limits: Limits) -> str:
    """How many inputs would do if error rates are as observed; or that none will, and how sure that is."""
    for entry in tested:
        accepted, errors = _most_certain(entry)
        if errors >= entry.risk.max_error * accepted:
            low, high = binomial_interval(errors, accepted)
            return (
                f"Even the most certain have an {entry.risk.name} of {errors / accepted:.3g} ({errors} of {accepted:,}, 95 % "
                f"interval {low:.3g} to {high:.3g}): more inputs like these cannot promise less. Allow more errors, or use "
                "another score."
            )
    times = times_needed(tested, limits)
    if times is None:
        return f"More than {MOST:,} times as many inputs would be needed: allow more errors, or use another score."
    return (
        f"If errors are as frequent as here, about {_rounded(times * limits.of):,} calibration inputs are needed to promise it "
        "in every second case."
    )


def _most_certain(tested: Tested) -> tuple[int, int]:
    """How many of the most certain inputs are wrong least often, if errors grow more frequent with the score; their errors."""
    end = int(_hull(tested)[1])
    return int(tested.accepted[end]), int(tested.errors[end])


def times_needed(tested: Sequence[Tested], limits: Limits, /) -> float | None:
    """How many times as many inputs let a limit pass if errors are as frequent at every limit; None where `MOST` do not.

    Errors are taken to grow more frequent with the score, so that a single one among the most certain is not scaled up.
    """
    smooth = [(entry, _smooth_errors(entry)) for entry in tested]

    def enough(times: float) -> bool:
        larger = [_scaled(entry, errors, times) for entry, errors in smooth]
        grown = Limits(limits.values, np.floor(times * limits.counts).astype(np.int64), math.floor(times * limits.of))
        return last_passed(larger, grown, plan_of(larger, grown)) is not None

    low, high = 1.0, 2.0
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _scaled(tested: Tested, errors: NDArray[np.float64], times: float) -> Tested:
    accepted = np.floor(times * tested.accepted).astype(np.int64)
    return replace(tested, accepted=accepted, errors=np.round(times * errors).astype(np.int64))


def _smooth_errors(tested: Tested) -> NDArray[np.float64]:
    """The errors at every limit on the largest convex curve below the observed ones (isotonic regression of the error rate)."""
    ends = _hull(tested)
    accepted, errors = (np.append(0, x)[ends + 1] for x in (tested.accepted, tested.errors))
    return np.interp(tested.accepted, accepted, errors)


def _hull(tested: Tested) -> NDArray[np.intp]:
    """The limits at the corners of that curve, from left to right; -1 is where nothing is accepted."""
    corners = [(-1, 0, 0)]
    for place, (accepted, errors) in enumerate(zip(tested.accepted.tolist(), tested.errors.tolist(), strict=True)):
        if accepted == corners[-1][1]:
            continue
        while len(corners) > 1 and _turns_down(corners[-2], corners[-1], accepted, errors):
            corners.pop()
        corners.append((place, accepted, errors))
    return np.array([place for place, _, _ in corners])


def _turns_down(a: tuple[int, int, int], b: tuple[int, int, int], accepted: int, errors: int) -> bool:
    """Whether the rate from b on is no higher than that from a to b."""
    return (errors - b[2]) * (b[1] - a[1]) <= (b[2] - a[2]) * (accepted - b[1])


def _rounded(count: float) -> int:
    """To two digits, upwards."""
    unit = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return math.ceil(count / unit) * unit
