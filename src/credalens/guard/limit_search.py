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
from credalens.guard.binomial import binomial_interval, masses_of, upper_bound
from credalens.guard.cost_risk import CostPromise, TestedCost
from credalens.guard.risk import (
    LATE,
    Limits,
    Plan,
    Promise,
    Risk,
    Tested,
    TestedRisk,
    last_passed,
    limits_of,
    plan_of,
    risks_at,
)
from credalens.guard.signature import CalibrationData

Costs = tuple[NDArray[np.float64], NDArray[np.int64], float]
"""The matrix of costs, the actions that are taken about the calibration inputs, and the highest expected cost."""
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

    given = count_text(limits.of, "calibration input")

    def wanted(entry: Tested) -> str:
        return f"{entry.risk.name} of at most {entry.risk.max_error:.3g} with {entry.confidence:.3g} confidence"

    if few := [entry for entry in tested if entry.most < entry.fewest()]:
        worst = max(few, key=lambda entry: entry.fewest() - entry.most)
        return (
            f"{given} cannot promise an {wanted(worst)}: it concerns at most "
            f"{count_text(worst.most, 'accepted one')}, and at least {worst.fewest():,} are needed, even if none of them is an "
            "error."
        )
    if plan is None:
        return (
            f"{given} cannot promise all {len(tested)} error rates at once: no limit accepts enough inputs of each. Promise "
            "fewer of them, or take more data."
        )
    worst = max(tested, key=lambda entry: entry.bound(max(plan.starts)))
    places = [(*worst.counts(place), worst.bound(place, share)) for place, share in sorted(plan.starts.items())]
    seen = " and ".join(f"{count_text(k, 'error')} in {m:,} (enough for {rate:.3g})" for k, m, rate in places)
    return (
        f"no limit of {score!r} can promise an {wanted(worst)}: among the most certain of the {limits.of:,} calibration "
        f"inputs there are {seen}. {_advice(tested, limits)}"
    )


def _advice(tested: Sequence[Tested], limits: Limits) -> str:
    """How many inputs would do; or that none will for so large a share of them, or that the data cannot tell."""
    for entry in tested:
        places = _leading(entry)
        if all(binomial_interval(*entry.counts(place))[0] >= entry.risk.max_error for place in places):
            rate = _rate_at(entry, places[0])
            return f"{rate}: more inputs like these can promise it for a smaller share of them at most. {INSTEAD}"
    best = [min(_leading(entry), key=entry.p_value) for entry in tested]  # most surely below the allowed rate
    pairs = [*zip(tested, best, strict=True)]
    seems_possible = all(entry.p_value(place) <= DOUBT / len(_leading(entry)) for entry, place in pairs)
    if not seems_possible or (times := times_needed(tested, limits)) is None:
        worst, place = max(pairs, key=lambda pair: pair[0].p_value(pair[1]))
        rate = _rate_at(worst, place)
        return (
            f"{rate}: these data cannot tell whether more inputs would do. Take more, {INSTEAD[0].lower()}{INSTEAD[1:]}"
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


def _rate_at(tested: Tested, place: int) -> str:
    errors, accepted = tested.counts(place)
    low, high = binomial_interval(errors, accepted)
    return (
        f"Among the {accepted:,} most certain the {tested.risk.name} is {errors / accepted:.3g} "
        f"({count_text(errors, 'error')}, 95 % interval {low:.3g} to {high:.3g})"
    )


def _rounded(count: float) -> int:
    """To two digits, upwards."""
    unit = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return math.ceil(count / unit) * unit


def _leading(tested: Tested) -> list[int]:
    """The limits at which more inputs might be promised: sequences begin there, or stricter where fewer are wrong.

    The loosest is where the last sequence begins; the others accept half as many, a quarter and so on.
    """
    largest = max(LATE * tested.most, tested.fewest())
    smallest = max(SMALLEST * tested.most, tested.fewest())
    sizes = [largest / 2**half for half in range(1 + int(math.log2(largest / smallest)))]
    return sorted({int(np.searchsorted(tested.accepted, math.ceil(size))) for size in sizes})


def times_needed(tested: Sequence[Tested], limits: Limits, level: float | None = None, /) -> float | None:
    """How many times as many inputs let a limit pass if errors are as frequent at every limit; None where `MOST` do not.

    Errors are taken to grow more frequent with the score, so that a single one among the most certain is not scaled up.
    With a ``level`` they are as frequent as the observed ones do not rule out at that confidence.
    """
    smooth = [(entry, _smooth_errors(entry, level)) for entry in tested]

    def enough(times: float) -> bool:
        def scaled(counts: NDArray) -> NDArray[np.int64]:
            return np.floor(times * counts).astype(np.int64)

        larger = [
            replace(entry, accepted=scaled(entry.accepted), errors=np.round(times * errors).astype(np.int64))
            for entry, errors in smooth
        ]
        grown = Limits(limits.values, scaled(limits.counts), math.floor(times * limits.of))
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


def _smooth_errors(tested: Tested, level: float | None) -> NDArray[np.float64]:
    """The errors at every limit on the largest convex curve below those at the leading ones: their rate grows along it."""
    corners = [(0, 0.0)]
    for place in _leading(tested):
        count, accepted = tested.counts(place)
        errors = float(count) if level is None else accepted * upper_bound(count, accepted, level=level)
        while len(corners) > 1:  # drop the last corner where the rate from it on is no higher than that up to it
            (a, of_a), (b, of_b) = corners[-2:]
            if (errors - of_b) * (b - a) > (of_b - of_a) * (accepted - b):
                break
            corners.pop()
        corners.append((accepted, errors))
    return np.interp(tested.accepted, *np.array(corners).T)


def promised_limit(
    data: CalibrationData, ordered: NDArray, threshold: float, risks: tuple[Risk, ...], confidence: float,
    cost: Costs | None = None, /,
) -> tuple[float, tuple[Promise, ...], CostPromise | None]:  # fmt: skip
    """The loosest limit at which all risks are promised; infinite where there are none, an error where it fails."""
    if not risks and cost is None:
        return math.inf, (), None
    limits = limits_of(ordered, threshold, data.signature.slack(data.score))
    tested = risks_at(data, risks, limits, confidence) if risks else []
    costs = None if cost is None else TestedCost.of(data, *cost, limits, confidence)
    both: list[TestedRisk] = [*tested, *([] if costs is None else [costs])]
    plan = plan_of(both, limits)
    place = last_passed(both, limits, plan)
    if place is None or plan is None:
        if costs is not None and (not tested or last_passed(tested, limits, plan_of(tested, limits)) is not None):
            raise ValueError(costs.shortfall(data.score, max(plan.starts) if plan else -1))
        raise ValueError(shortfall(tested, limits, plan, data.score))
    promises = []
    for entry in tested:
        errors, accepted = entry.counts(place)
        highest = binomial_interval(errors, accepted)[1]
        promises.append(
            Promise(
                **vars(entry.risk),
                confidence=entry.confidence,
                accepted=accepted,
                errors=errors,
                p_value=entry.p_value(place),
                bound=entry.bound(place),
                refused=refused_share(entry, plan, errors / accepted),
                highest=highest,
                refused_at_highest=refused_share(entry, plan, highest),
            )
        )
    paid = None
    if costs is not None and cost is not None:
        paid = CostPromise(
            float(cost[2]),
            confidence,
            int(costs.accepted[place]),
            costs.mean(place),
            costs.p_value(place),
            costs.bound(place),
        )
    return float(limits.values[place]), tuple(promises), paid


def refused_share(tested: Tested, plan: Plan, rate: float, /) -> float:
    """The share of calibration data with this error rate at all limits for which every sequence ends where it begins."""
    starts, most = sorted(plan.starts.items()), []
    for place, share in starts:  # the most errors with which a limit passes; -1 where it never does
        accepted = int(tested.accepted[place])
        tails = np.cumsum(masses_of(accepted, accepted)(tested.risk.max_error))
        level = share * (1 - tested.confidence) * (1 + 1e-12)
        most.append(int(np.searchsorted(tails, level, side="right")) - 1)
    alive, inputs, passed = np.ones(1), 0, 0.0  # chances of each number of errors while nothing has passed
    for (place, _), passing in zip(starts, most, strict=True):
        more = int(tested.accepted[place]) - inputs
        alive = np.convolve(alive, masses_of(more, more)(rate)[: max(most) + 1])[: max(most) + 1]
        passed += float(alive[: passing + 1].sum())
        alive[: passing + 1] = 0.0
        inputs += more
    return min(1.0, max(0.0, 1.0 - passed))
