"""Drift of what a server is asked: the guard's scores against those it was fitted on."""

from __future__ import annotations

import math
from typing import Any, Final

from credalens.guard import Decisions, DriftAlarm, Guard
from credalens.serve.observer import LOG

ALPHA: Final = 0.05


def drift_alarm(guard: Guard | None, /, *, streams: int = 1) -> DriftAlarm | None:
    """An alarm on the scores of a guard, one of ``streams`` that are falsely raised with probability 0.05 in all.

    It compares with the calibration scores only, so that its memory does not grow with the stream. None without a guard,
    and where the guard has too few scores.
    """
    if guard is None:
        return None
    try:
        return DriftAlarm(guard.scores, alpha=ALPHA / streams, method="fixed", tolerance=_tolerance(guard))
    except ValueError as error:
        LOG.warning("drift is not watched: %s", error)
        return None


def tolerance_of(decisions: Decisions, /) -> float:
    """What rounding may change of the scores that were decided about: more, where members come in half precision."""
    return _tolerance(decisions._guard, decisions._prediction._rounding)


def _tolerance(guard: Guard, rounding: float | None = None) -> float:
    slack = guard.signature.slack(rounding)
    return max(slack.absolute, slack.relative)


def update(alarm: DriftAlarm, scores: Any, /, *, tolerance: float | None = None, **fields: Any) -> None:
    """Show the alarm more scores; the log says when it is raised."""
    before = alarm.alarm
    alarm.update(scores, tolerance=tolerance)
    if alarm.alarm and not before:
        fields |= {"log_value": alarm.log_value, "log_bound": math.log(alarm.bound), "rows": alarm.alarm_at}
        LOG.warning("drift alarm: scores are higher than those of the calibration data", extra={"fields": fields})
