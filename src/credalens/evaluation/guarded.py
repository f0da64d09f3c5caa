"""Where to set the alarm, the guard that an evaluation hands on, and what would have happened with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.metrics.threshold import Threshold, threshold_for_rate
from credalens.evaluation.results import Result
from credalens.guard import Guard
from credalens.guard.binomial import least_samples
from credalens.guard.calibration import CalibrationData
from credalens.guard.false_alarms import alarm_threshold
from credalens.guard.rounding import difference, slack_of
from credalens.guard.signature import PredictionKind, Signature

RATES: Final = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


@dataclass(frozen=True)
class Alarm(Result):
    """A threshold for one uncertainty, and the share of each OOD data set above it."""

    score: str
    threshold: Threshold
    caught: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, including those of the threshold."""
        return {"score": self.score, **self.threshold.as_dict(), "caught": self.caught}


def alarms(id_set: ScoredSet, ood_sets: list[ScoredSet], rate: float, base: float, /) -> tuple[Alarm, ...]:
    """An alarm for ``rate`` and every usual rate, by every score."""
    return tuple(
        _alarm(id_set, ood_sets, wanted, name, base) for wanted in sorted({*RATES, rate}) for name in id_set.scores
    )


def _alarm(id_set: ScoredSet, ood_sets: list[ScoredSet], rate: float, name: str, base: float) -> Alarm:
    threshold = threshold_for_rate(id_set.scores[name], rate, name=name, base=base)
    flags = {ood_set.name: threshold.flags(ood_set.scores[name]) for ood_set in ood_sets}
    return Alarm(name, threshold, {of: float(flagged.mean()) for of, flagged in flags.items()})


@dataclass(frozen=True)
class GuardedData(Result):
    """What a guard would have done with a data set.

    :ivar errors: wrong predictions among the accepted; None for data without labels.
    """

    name: str
    rows: int
    accepted: int
    errors: int | None

    @property
    def abstained(self) -> int:
        """How many inputs it would have handed over."""
        return self.rows - self.accepted


@dataclass(frozen=True)
class GuardOutcome(Result):
    """What would have happened at one false-alarm rate: to the ID data first, then to every OOD data set.

    ID inputs are judged by thresholds from the other half of the ID data, so that none decides about itself.
    """

    false_alarm_rate: float
    data: tuple[GuardedData, ...]


def guard_of(id_set: ScoredSet, /, *, score: str, point: str, base: float, rate: float) -> Guard | None:
    """The guard of the ID data; None where they are too few for the false-alarm rate."""
    members, rows, classes = id_set.source.shape
    if rows < least_samples(rate):
        return None
    values = id_set.scores[score].astype(np.float64)
    signature = Signature(score, point, base, PredictionKind(classes, members, 0.0, id_set.source.rounding))
    return Guard.from_calibration(CalibrationData(signature, values), false_alarm_rate=rate)


def guard_outcomes(
    id_set: ScoredSet,
    ood_sets: Sequence[ScoredSet],
    correct: NDArray[np.bool_] | None,
    /,
    *,
    score: str,
    base: float,
    rate: float,
    seed: int,
) -> tuple[GuardOutcome, ...]:
    """For ``rate`` and every usual rate that half of the ID data can promise."""

    def lowest(data: ScoredSet) -> NDArray:
        differing = difference(id_set.source.rounding, data.source.rounding)
        slack = slack_of(score, classes=id_set.source.shape[2], base=base, rounding=differing)
        return slack.lowest(data.scores[score].astype(np.float64))

    values = id_set.scores[score].astype(np.float64)
    first = np.zeros(len(values), bool)
    first[np.random.default_rng(seed).permutation(len(values))[: len(values) // 2]] = True
    rates = [wanted for wanted in sorted({*RATES, rate}) if first.sum() >= least_samples(wanted)]
    data = [(data.name, lowest(data)) for data in (id_set, *ood_sets)]
    return tuple(_outcome(wanted, values, first, correct, data) for wanted in rates)


def _outcome(
    rate: float, values: NDArray, first: NDArray, correct: NDArray | None, data: Sequence[tuple[str, NDArray]]
) -> GuardOutcome:
    """Of the lowest scores that those of each data set may stand for, the ID data first."""
    (name, lowest), *others = data
    halves = [alarm_threshold(values[half], rate) for half in (~first, first)]
    accepted = lowest <= np.where(first, *halves)
    errors = None if correct is None else int((accepted & ~correct).sum())
    whole = alarm_threshold(values, rate)
    of_others = (GuardedData(other, len(scores), int((scores <= whole).sum()), None) for other, scores in others)
    return GuardOutcome(rate, (GuardedData(name, len(values), int(accepted.sum()), errors), *of_others))
