"""The loosest limit whose error rates are promised, and how often such a search would find none."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from credalens.guard.binomial import binomial_interval, binomial_masses
from credalens.guard.calibration import CalibrationData
from credalens.guard.risk.control import Plan, Tested, last_passed, limits_of, plan_of, risks_at
from credalens.guard.risk.promise import Promise, Risk
from credalens.guard.risk.shortfall import shortfall


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
