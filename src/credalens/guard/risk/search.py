"""The loosest limit whose error rates are promised."""

from __future__ import annotations

import math

from numpy.typing import NDArray

from credalens.guard.calibration import Calibration
from credalens.guard.risk.control import last_passed, limits_of, risks_at
from credalens.guard.risk.promise import Promise, Risk
from credalens.guard.risk.shortfall import shortfall


def promised_limit(
    calibration: Calibration, ordered: NDArray, threshold: float, risks: tuple[Risk, ...], confidence: float, /
) -> tuple[float, tuple[Promise, ...]]:
    """The loosest limit at which all risks are promised; infinite where there are none, an error where it fails."""
    if not risks:
        return math.inf, ()
    limits = limits_of(ordered, threshold)
    tested = risks_at(calibration.outcomes, risks, limits, confidence)
    place = last_passed(tested)
    if place is None:
        raise ValueError(shortfall(tested, limits, calibration.score))
    return float(limits.values[place]), tuple(entry.promise(place) for entry in tested)
