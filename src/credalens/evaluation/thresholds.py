"""Where to set the alarm: thresholds with a known false-alarm rate, to keep and use again.

And what they do: what a guard would have done with every data set, and false alarms and accuracy by groups of the ID data.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks import options
from credalens.checks.arrays import read_sample_scores, read_scores
from credalens.checks.options import check_fraction, count_text
from credalens.core.scores import SCORES
from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.prediction_quality import JudgedRows, PointChoice
from credalens.evaluation.results import Interval, Result, Settings
from credalens.guard import Guard
from credalens.guard.binomial import alarm_threshold, binomial_interval, least_samples, most_hits
from credalens.guard.signature import CalibrationData, Signature, difference, slack_of
from credalens.prediction import CredalPrediction
from credalens.storage import atomic_file
from credalens.storage.formats.files import restoring

FORMAT = "credalens-threshold-1"
RATES: Final = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
"""The usual false-alarm rates."""
TRUE_CLASS = "true class"
Columns = dict[str, NDArray[np.object_]]
"""Name -> the group of every ID input, a text; as objects, since NumPy's own texts all take the room of the longest."""


@dataclass(frozen=True)
class Threshold(Result):
    """Flags every score above ``value``: made by ``select_threshold``, used by ``flags``.

    :ivar false_alarm_rate: the rate that was wanted.
    :ivar achieved_rate: share of the ID samples it was chosen on that it flags, at most the wanted rate.
    :ivar n_id: how many samples it was chosen on.
    :ivar guarantee: "sample" or "new", see :func:`select_threshold`.
    :ivar name: which score it is for, such as "epistemic"; a threshold means nothing on another score.
    :ivar base: in which base that score is measured; a prediction is compared only where it is known.
    """

    value: float
    false_alarm_rate: float
    achieved_rate: float
    n_id: int
    guarantee: str
    name: str
    base: float | None = None

    def flags(self, x: Any, /) -> NDArray[np.bool_]:
        """True where a score lies above the threshold.

        ``x`` is a ``CredalPrediction``, whose score is computed here and whose base is checked, or an array of scores.
        """
        if not isinstance(x, CredalPrediction):
            return read_scores(x, "scores") > self.value
        if self.name not in SCORES:
            raise ValueError(
                f"this threshold is for {self.name or 'an unnamed score'!r}, which is not a score of the catalogue "
                f"({', '.join(SCORES)}); pass the scores themselves."
            )
        if SCORES[self.name].unit == "information":
            if self.base is None:
                raise ValueError(
                    "this threshold does not know the base of its scores; pass it, select_threshold(..., base=2) for bits, or "
                    "pass the scores themselves."
                )
            options.check_same_base(x.base, self.base, "this threshold is for scores")
        return read_scores(x.score(self.name), "scores") > self.value

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write as JSON; the file appears whole or not at all."""
        value = self.value if math.isfinite(self.value) else str(self.value)
        text = json.dumps({"format": FORMAT, **self.as_dict(), "value": value}, indent=2, allow_nan=False)
        with atomic_file(path) as file:
            file.write(text.encode() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Threshold:
        """Read what :meth:`save` wrote; the value comes back bit for bit."""
        with restoring(path, f"threshold ({FORMAT})"):
            stored = json.loads(Path(path).read_text(encoding="utf-8"))
            if stored["format"] != FORMAT:
                raise ValueError(f"format is {stored['format']!r}")
            return cls(
                value=float(read_scores(float(stored["value"]), "value")),
                false_alarm_rate=check_fraction(stored["false_alarm_rate"], "false_alarm_rate"),
                achieved_rate=float(stored["achieved_rate"]),
                n_id=options.check_count(stored["n_id"], "n_id"),
                guarantee=str(stored["guarantee"]),
                name=str(stored["name"]),
                base=None if stored.get("base") is None else options.check_base(stored["base"]),
            )


def select_threshold(
    id_scores: Any,
    /,
    *,
    false_alarm_rate: float = 0.05,
    guarantee: Literal["sample", "new"] = "sample",
    name: str = "",
    base: float | None = None,
) -> Threshold:
    r"""The lowest threshold whose false-alarm rate on ID data is at most the wanted one, safe at ties.

    An ID score serves as the threshold and only scores strictly above it are flagged:

    .. math:: t = \min\{s \in \mathrm{ID} : |\{i : s_i > s\}| \le r \, n\}

    With ``guarantee="sample"`` that bounds the rate on ``id_scores`` themselves. With ``guarantee="new"`` one
    more, unseen sample is counted as an alarm, :math:`|\{s_i > s\}| + 1 \le r (n + 1)`, which bounds the
    probability that a new sample from the same source is flagged (split conformal prediction); use data the
    model was not trained on.

    >>> threshold = select_threshold([0.1, 0.2, 0.2, 0.4, 0.7], false_alarm_rate=0.2)
    >>> threshold.value, threshold.achieved_rate, threshold.flags([0.4, 0.41]).tolist()
    (0.4, 0.2, [False, True])
    """
    options.check_choice(guarantee, ("sample", "new"), "guarantee")
    ordered = np.sort(read_sample_scores(id_scores, "id_scores"))
    rate, n, unseen = check_fraction(false_alarm_rate, "false_alarm_rate"), len(ordered), int(guarantee == "new")
    alarms = most_hits(rate, n + unseen) - unseen
    if alarms < 0:
        raise ValueError(
            f"{count_text(n, 'sample')} cannot promise a false-alarm rate of {rate:g} on new data; "
            f"at least {least_samples(rate)} are needed. Pass more, or guarantee='sample'."
        )
    value = float(ordered[n - 1 - alarms])
    return Threshold(value, rate, float((ordered > value).mean()), n, guarantee, name, base)


def threshold_for_rate(id_scores: NDArray, rate: float, /, *, name: str = "", base: float | None = None) -> Threshold:
    """A threshold whose promise holds for new ID inputs, or, where there are too few to promise, for these."""
    guarantee: Literal["sample", "new"] = "new" if len(id_scores) >= least_samples(rate) else "sample"
    return select_threshold(id_scores, false_alarm_rate=rate, guarantee=guarantee, name=name, base=base)


@dataclass(frozen=True)
class Alarm(Result):
    """A threshold for one uncertainty, and the share of each OOD data set above it."""

    score: str
    threshold: Threshold
    caught: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, including those of the threshold."""
        return {"score": self.score, **self.threshold.as_dict(), "caught": self.caught}


def alarms(id_set: ScoredSet, ood_sets: Sequence[ScoredSet], settings: Settings, /) -> tuple[Alarm, ...]:
    """An alarm for the wanted and every usual rate, by every score."""

    def alarm(rate: float, name: str) -> Alarm:
        threshold = threshold_for_rate(id_set.scores[name], rate, name=name, base=settings.base)
        return Alarm(name, threshold, {one.name: float(threshold.flags(one.scores[name]).mean()) for one in ood_sets})

    return tuple(alarm(rate, name) for rate in sorted({*RATES, settings.false_alarm_rate}) for name in id_set.scores)


def guard_of(id_set: ScoredSet, settings: Settings, /, *, score: str, point: PointChoice | None) -> Guard | None:
    """The guard of the ID data; None where they are too few for the false-alarm rate."""
    members, rows, classes = id_set.source.shape
    if rows < least_samples(settings.false_alarm_rate):
        return None
    signature = Signature(classes, members, 0.0, id_set.source.rounding, settings.base, settings.temperatures)
    named_by = point.prediction if point else "intersection"
    data = CalibrationData(signature, score, named_by, id_set.scores[score].astype(np.float64))
    return Guard.from_calibration(data, false_alarm_rate=settings.false_alarm_rate)


@dataclass(frozen=True)
class GuardedData(Result):
    """Decisions that a guard would have made about a data set.

    :ivar errors: wrong predictions among the accepted; None for data without labels.
    """

    name: str
    rows: int
    accepted: int
    errors: int | None

    @property
    def abstained(self) -> int:
        """Number of inputs that it would have handed over."""
        return self.rows - self.accepted


@dataclass(frozen=True)
class GuardOutcome(Result):
    """Decisions of a guard at one false-alarm rate: about the ID data first, then about every OOD data set.

    ID inputs are judged by thresholds from the other half of the ID data, so that none decides about itself.
    """

    false_alarm_rate: float
    data: tuple[GuardedData, ...]


def guard_outcomes(
    id_set: ScoredSet,
    ood_sets: Sequence[ScoredSet],
    correct: NDArray[np.bool_] | None,
    settings: Settings,
    /,
    *,
    score: str,
) -> tuple[GuardOutcome, ...]:
    """For the wanted and every usual rate that half of the ID data can promise."""

    def lowest(data: ScoredSet) -> NDArray:
        """The lowest scores that those of a data set may stand for, as far as rounding goes."""
        differing = difference(id_set.source.rounding, data.source.rounding)
        slack = slack_of(score, classes=id_set.source.shape[2], base=settings.base, rounding=differing)
        return slack.lowest(data.scores[score].astype(np.float64))

    values = id_set.scores[score].astype(np.float64)
    first = np.zeros(len(values), bool)
    first[np.random.default_rng(settings.seed).permutation(len(values))[: len(values) // 2]] = True
    id_lowest, ood_lowest = lowest(id_set), {data.name: lowest(data) for data in ood_sets}

    def outcome(rate: float) -> GuardOutcome:
        accepted = id_lowest <= np.where(first, *(alarm_threshold(values[half], rate) for half in (~first, first)))
        errors = None if correct is None else int((accepted & ~correct).sum())
        whole = alarm_threshold(values, rate)
        of_ood = (GuardedData(name, len(of), int((of <= whole).sum()), None) for name, of in ood_lowest.items())
        return GuardOutcome(rate, (GuardedData(id_set.name, len(values), int(accepted.sum()), errors), *of_ood))

    rates = sorted({*RATES, settings.false_alarm_rate})
    return tuple(outcome(rate) for rate in rates if first.sum() >= least_samples(rate))


@dataclass(frozen=True)
class Group(Result):
    """One part of the ID data; shares of its inputs with their exact intervals.

    :ivar accuracy: of the recommended point prediction; None without labels.
    :ivar confidence: its mean; None without labels.
    :ivar false_alarms: at the wanted rate.
    :ivar flagged: share at every usual rate, rising.
    """

    name: str
    rows: int
    accuracy: Interval | None
    confidence: float | None
    false_alarms: Interval
    flagged: list[float]


@dataclass(frozen=True)
class Breakdown(Result):
    """All groups of one column, the one of lowest accuracy, or else of most false alarms, first."""

    column: str
    groups: tuple[Group, ...]


def break_down(
    column: str,
    values: NDArray[np.object_],
    scores: NDArray,
    judged: JudgedRows | None,
    alarms: Sequence[Alarm],
    settings: Settings,
    /,
) -> Breakdown:
    """The groups of a column; ``scores`` are those that the ``alarms`` look at, whose rates rise."""
    names, group_of, count = np.unique(values, return_inverse=True, return_counts=True)

    def sums(x: NDArray) -> NDArray:
        return np.bincount(group_of, weights=x, minlength=len(names))

    def share(hits: float, n: int) -> Interval:
        low, high = binomial_interval(round(hits), n, level=settings.level)
        return Interval(float(hits / n), low, high, settings.level, "clopper-pearson", n, 0)

    flagged = np.array([sums(alarm.threshold.flags(scores)) for alarm in alarms])
    wanted = flagged[[alarm.threshold.false_alarm_rate for alarm in alarms].index(settings.false_alarm_rate)]
    right = None if judged is None else sums(judged.correct)
    confidence = None if judged is None else sums(judged.confidence) / count

    def group(k: int, n: int) -> Group:
        accuracy = None if right is None else share(right[k], n)
        sure = None if confidence is None else float(confidence[k])
        return Group(names[k], n, accuracy, sure, share(wanted[k], n), (flagged[:, k] / n).tolist())

    groups = [group(k, n) for k, n in enumerate(count.tolist())]
    worst_first = sorted(groups, key=lambda g: (g.accuracy.value if g.accuracy else -g.false_alarms.value, g.name))
    return Breakdown(column, tuple(worst_first))
