"""The loosest limit whose error rates are promised, and how often such a search would find none.

A refusal says why: how far the data are from the promise, and how many would be needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.guard.binomial import binomial_interval, binomial_masses, upper_bound
from credalens.guard.calibration import CalibrationData
from credalens.guard.risk import LATE, Limits, Plan, Promise, Risk, Tested, last_passed, limits_of, plan_of, risks_at

MOST: Final = 1_000
"""Times as many inputs that one might still label."""
SMALLEST: Final = 0.1
"""The smallest part of what could be accepted about which anything is said: chance alone makes a smaller one look sure."""
DOUBT: Final = 0.1
"""How likely a number of inputs is named, at most, where no number would do."""
CAUTIOUS: Final = 0.8
"""The confidence that errors are not more frequent than the higher number of inputs takes for granted."""
INSTEAD: Final = "Allow more errors, or use another score."


def shortfall(tested: Sequence[Tested], limits: Limits, plan: Plan | None, score: str, /) -> str:
    """The error message about the risk that is furthest from its promise."""
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
    """How many inputs would do; or that none will for so large a share of them, or that the data cannot tell."""
    if hopeless := next((entry for entry in tested if _seems_impossible(entry)), None):
        seen = _rate_at(hopeless, _leading(hopeless)[0])
        return f"{seen}: more inputs like these can promise it for a smaller share of them at most. {INSTEAD}"
    times = times_needed(tested, limits) if all(map(_seems_possible, tested)) else None
    if times is None:
        worst = max(tested, key=lambda entry: entry.p_value(_best_place(entry)))
        seen = _rate_at(worst, _best_place(worst))
        return (
            f"{seen}: these data cannot tell whether more inputs would do. Take more, {INSTEAD[0].lower()}{INSTEAD[1:]}"
        )
    most_times = times_needed(tested, limits, CAUTIOUS)
    at_most = (
        f"more than {MOST:,} times as many" if most_times is None else f"about {_rounded(most_times * limits.of):,}"
    )
    return (
        f"If errors are as frequent as here, about {_rounded(times * limits.of):,} calibration inputs are needed to promise it "
        f"in every second case, and {at_most} if they are as frequent as these data leave possible at {CAUTIOUS:.0%} "
        "confidence."
    )


def _leading(tested: Tested) -> list[int]:
    """The limits at which more inputs might be promised: sequences begin there, or stricter where fewer are wrong.

    The loosest is where the last sequence begins; the others accept half as many, a quarter and so on.
    """
    largest = max(LATE * tested.most, tested.fewest())
    smallest = max(SMALLEST * tested.most, tested.fewest())
    sizes = [largest / 2**half for half in range(1 + int(math.log2(largest / smallest)))]
    return sorted({int(np.searchsorted(tested.accepted, math.ceil(size))) for size in sizes})


def _interval(tested: Tested, place: int) -> tuple[float, float]:
    """Of the error rate at a limit, with a confidence of 95 %."""
    return binomial_interval(int(tested.errors[place]), int(tested.accepted[place]))


def _best_place(tested: Tested) -> int:
    """The leading limit at which the error rate is most surely below the allowed one."""
    return min(_leading(tested), key=tested.p_value)


def _seems_impossible(tested: Tested) -> bool:
    """Whether the error rate is above the allowed one at every leading limit."""
    return all(_interval(tested, place)[0] >= tested.risk.max_error for place in _leading(tested))


def _seems_possible(tested: Tested) -> bool:
    """Whether the error rate is below the allowed one at a leading limit; wrong with a probability of `DOUBT`."""
    return tested.p_value(_best_place(tested)) <= DOUBT / len(_leading(tested))


def _rate_at(tested: Tested, place: int) -> str:
    accepted, errors, (low, high) = int(tested.accepted[place]), int(tested.errors[place]), _interval(tested, place)
    return (
        f"Among the {accepted:,} most certain the {tested.risk.name} is {errors / accepted:.3g} "
        f"({count_text(errors, 'error')}, 95 % interval {low:.3g} to {high:.3g})"
    )


def times_needed(tested: Sequence[Tested], limits: Limits, level: float | None = None, /) -> float | None:
    """How many times as many inputs let a limit pass if errors are as frequent at every limit; None where `MOST` do not.

    Errors are taken to grow more frequent with the score, so that a single one among the most certain is not scaled up.
    With a ``level`` they are as frequent as the observed ones do not rule out at that confidence.
    """
    smooth = [(entry, _smooth_errors(entry, level)) for entry in tested]

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


def _smooth_errors(tested: Tested, level: float | None) -> NDArray[np.float64]:
    """The errors at every limit on the largest convex curve below those at the leading ones: their rate grows along it."""
    corners = [(0, 0.0)]
    for place in _leading(tested):
        accepted, errors = int(tested.accepted[place]), float(tested.errors[place])
        if level is not None:
            errors = accepted * upper_bound(int(errors), accepted, level=level)
        while len(corners) > 1 and _turns_down(corners[-2], corners[-1], accepted, errors):
            corners.pop()
        corners.append((accepted, errors))
    return np.interp(tested.accepted, *np.array(corners).T)


def _turns_down(a: tuple[int, float], b: tuple[int, float], accepted: int, errors: float) -> bool:
    """Whether the rate from b on is no higher than that from a to b."""
    return (errors - b[1]) * (b[0] - a[0]) <= (b[1] - a[1]) * (accepted - b[0])


def _rounded(count: float) -> int:
    """To two digits, upwards."""
    unit = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return math.ceil(count / unit) * unit


def promised_limit(
    data: CalibrationData, ordered: NDArray, threshold: float, risks: tuple[Risk, ...], confidence: float, /
) -> tuple[float, tuple[Promise, ...]]:
    """The loosest limit at which all risks are promised; infinite where there are none, an error where it fails."""
    if not risks:
        return math.inf, ()
    limits = limits_of(ordered, threshold, data.signature.slack())
    tested = risks_at(data.outcomes, risks, limits, confidence)
    plan = plan_of(tested, limits)
    place = last_passed(tested, limits, plan)
    if place is None or plan is None:
        raise ValueError(shortfall(tested, limits, plan, data.signature.score))
    return float(limits.values[place]), tuple(_promise(entry, place, plan) for entry in tested)


def _promise(tested: Tested, place: int, plan: Plan) -> Promise:
    """The promise that was tested at one limit."""
    accepted, errors = int(tested.accepted[place]), int(tested.errors[place])
    highest = binomial_interval(errors, accepted)[1]
    return Promise(
        **vars(tested.risk),
        confidence=tested.confidence,
        accepted=accepted,
        errors=errors,
        p_value=tested.p_value(place),
        bound=tested.bound(place),
        refused=refused_share(tested, plan, errors / accepted),
        highest=highest,
        refused_at_highest=refused_share(tested, plan, highest),
    )


def refused_share(tested: Tested, plan: Plan, rate: float, /) -> float:
    """The share of calibration data with this error rate at all limits for which every sequence ends where it begins."""
    starts = sorted(plan.starts.items())
    most = [_most_errors(tested, place, share) for place, share in starts]
    alive, inputs, passed = np.ones(1), 0, 0.0  # chances of each number of errors while nothing has passed
    for (place, _), passing in zip(starts, most, strict=True):
        accepted = int(tested.accepted[place])
        alive = np.convolve(alive, binomial_masses(accepted - inputs, rate)[: max(most) + 1])[: max(most) + 1]
        passed += float(alive[: passing + 1].sum())
        alive[: passing + 1] = 0.0
        inputs = accepted
    return min(1.0, max(0.0, 1.0 - passed))


def _most_errors(tested: Tested, place: int, share: float) -> int:
    """The most errors with which a limit passes; -1 where it never does."""
    accepted = int(tested.accepted[place])
    tails = np.cumsum(binomial_masses(accepted, tested.risk.max_error))
    return int(np.searchsorted(tails, share * (1 - tested.confidence) * (1 + 1e-12), side="right")) - 1
