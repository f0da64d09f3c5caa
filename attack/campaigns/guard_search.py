"""The search for the loosest limit that keeps a promised error rate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from attack.case import Case, expect
from credalens.guard import Guard
from credalens.guard.binomial import binomial_tail
from credalens.guard.risk import Promise, Risk
from credalens.guard.signature import CalibrationData, Signature

DRAWS = 40
SURE = 1e-9  # probability of a false alarm of this campaign

Curve = Callable[[NDArray], NDArray]


def attack(case: Case) -> None:
    """Promises of error rates are broken as seldom as they say, whatever the curve, ties and number of inputs."""
    n, confidence = case.between(20, case.choose(80, 300, 1500)), case.choose(0.8, 0.9, 0.95)
    max_error = case.choose(0.02, 0.05, 0.1, 0.3)
    curve, levels = _curve(case, max_error), case.choose(0, 0, 3, 10, 50)
    rate = case.choose(None, None, 0.1)
    case.count(DRAWS * n)
    broken = refused = 0
    for _ in range(DRAWS):
        u = _scores(case, n, levels)
        wrong = case.rng.random(n) < curve(u)
        try:
            guard = _fit(u, wrong, max_error, confidence, rate)
        except ValueError as error:
            _check_refusal(str(error))
            refused += 1
            continue
        _check_promise(guard, u, wrong)
        broken += _true_error(guard, curve, levels) > max_error + 1e-12
    chance = 1 - binomial_tail(broken - 1, DRAWS, 1 - confidence) if broken else 1.0
    expect(chance > SURE, f"{broken} of {DRAWS} guards ({refused} refused) break {max_error} at {confidence}, n = {n}")
    _check_sure_rows(case, max_error)


def _scores(case: Case, n: int, levels: int) -> NDArray:
    u = case.rng.random(n)
    return np.floor(levels * u) / levels if levels else u


def _curve(case: Case, max_error: float) -> Curve:
    """The error rate by score: flat near the allowed one, rising, falling, or with sure ones."""
    factor, power = case.rng.uniform(0.2, 2.5), case.choose(0.5, 1.0, 3.0)
    at = case.rng.random()
    return case.choose(
        lambda u: np.full_like(u, min(1.0, 1.01 * max_error)),
        lambda u: np.minimum(1, factor * max_error * u**power * (1 + power)),
        lambda u: np.minimum(1, factor * max_error * (1 - u) ** power),
        lambda u: np.where(u < at, 0.0, min(1.0, 4 * max_error)),
        lambda u: np.where(u < at, min(1.0, 2 * max_error), 0.0),
    )


def _fit(u: NDArray, wrong: NDArray, max_error: float, confidence: float, rate: float | None) -> Guard:
    labels = np.zeros(len(u), np.int64)
    signature = Signature(classes=3, n_members=5, trim=0.0)
    data = CalibrationData(signature, "total", "intersection", u, labels + wrong, labels)
    return Guard.from_calibration(data, false_alarm_rate=rate, risks=(Risk(max_error),), confidence=confidence)


def _check_promise(guard: Guard, u: NDArray, wrong: NDArray) -> None:
    """What it says of the calibration data is so, and the numbers of its luck are probabilities."""
    promise: Promise = guard.promises[0]
    accepted = guard.accepts(u)
    found = int(accepted.sum()), int(wrong[accepted].sum())
    expect(found == (promise.accepted, promise.errors), f"accepts {found}, and says {promise}")
    expect(promise.p_value <= 1 - promise.confidence + 1e-12, f"promised with p = {promise.p_value}")
    refused, at_highest = promise.refused, promise.refused_at_highest
    if refused is None or at_highest is None or promise.highest is None:
        raise AssertionError("a new promise has all numbers")
    expect(
        0 <= refused <= at_highest + 1e-12 <= 1 + 2e-12, f"refused: {refused} at the observed rate, {at_highest} above"
    )
    expect(
        promise.highest >= promise.errors / promise.accepted, f"highest rate {promise.highest} below the observed one"
    )


def _true_error(guard: Guard, curve: Curve, levels: int) -> float:
    """The error rate among all inputs that it accepts."""
    grid = np.arange(levels) / levels if levels else (np.arange(200_000) + 0.5) / 200_000
    accepted = guard.accepts(grid)
    return float(curve(grid)[accepted].mean()) if accepted.any() else 0.0


def _check_refusal(text: str) -> None:
    known = ("cannot promise", "can promise an error rate", "cannot promise a false-alarm rate")
    expect(any(part in text for part in known), f"an error that is no refusal: {text}")
    if "no limit of" not in text:
        return
    ends = (
        "in every second case, and ",
        "for a smaller share of them at most",
        "cannot tell whether more inputs would do",
    )
    expect(sum(end in text for end in ends) == 1, f"says nothing of more inputs, or too much: {text}")
    if " about " in text:
        needed = int(text.split(" about ")[1].split()[0].replace(",", ""))
        expect(needed > 0, f"asks for nothing: {text}")


def _check_sure_rows(case: Case, max_error: float) -> None:
    """Sure rows without an error, as many as can promise anything at 0.95 of delta, are enough among ten times as many."""
    fewest = math.ceil(math.log(0.95 * 0.05) / math.log1p(-max_error))
    n = case.between(fewest, 10 * fewest)
    u = np.arange(n) / n
    guard = _fit(u, np.arange(n) >= fewest, max_error, 0.95, None)
    expect(guard.promises[0].accepted >= fewest, f"{fewest} sure rows of {n} are not accepted: {guard.promises}")
