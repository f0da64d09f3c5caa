"""Where to set the alarm: thresholds for several false-alarm rates, and what each of them catches."""

from __future__ import annotations

from typing import Any, Final

from numpy.typing import NDArray

from credalens.evaluation import Threshold, select_threshold
from credalens.evaluation.detection import DETECTORS
from credalens.evaluation.scores import KINDS, Scored

__all__ = ["RATES", "choose_threshold", "thresholds"]

RATES: Final = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


def choose_threshold(id_scores: NDArray, rate: float, /, *, name: str) -> Threshold:
    """A threshold whose promise holds for new ID inputs, or, where there are too few to promise, for these."""
    promises = len(id_scores) + 1 >= 1 / rate
    return select_threshold(id_scores, false_alarm_rate=rate, guarantee="new" if promises else "sample", name=name)


def thresholds(known: Scored, others: list[Scored], rate: float, /) -> list[dict[str, Any]]:
    """For every rate and uncertainty the threshold and the share of each OOD data set above it."""
    rates = sorted({*RATES, float(rate)})
    return [_row(known, others, wanted, kind, measure) for wanted in rates for measure in DETECTORS for kind in KINDS]


def _row(known: Scored, others: list[Scored], rate: float, kind: str, measure: str) -> dict[str, Any]:
    chosen = choose_threshold(known.scores[kind][measure], rate, name=f"{kind} {measure}")
    caught = {other.name: float(chosen.flags(other.scores[kind][measure]).mean()) for other in others}
    return {"kind": kind, "measure": measure, **chosen.as_dict(), "caught": caught}
