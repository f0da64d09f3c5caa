"""The same numbers for parts of the ID data: by true class, and by any column that the user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import escaped_names
from credalens.evaluation.guarded import Alarm
from credalens.evaluation.prediction_quality import JudgedRows
from credalens.evaluation.results import Result
from credalens.guard.binomial import binomial_interval

TRUE_CLASS = "true class"
Columns = dict[str, NDArray[np.object_]]
"""Name -> the group of every ID input, a text; as objects, since NumPy's own texts all take the room of the longest."""


@dataclass(frozen=True)
class Share(Result):
    """A share of inputs with its exact interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Group(Result):
    """One part of the ID data.

    :ivar accuracy: of the recommended point prediction; None without labels.
    :ivar confidence: its mean; None without labels.
    :ivar false_alarms: at the wanted rate.
    :ivar flagged: share at every usual rate, rising.
    """

    name: str
    rows: int
    accuracy: Share | None
    confidence: float | None
    false_alarms: Share
    flagged: list[float]


@dataclass(frozen=True)
class Breakdown(Result):
    """All groups of one column, the one of lowest accuracy, or else of most false alarms, first."""

    column: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, eq=False)
class RowOutcomes:
    """What happened to every ID input: right or not and how sure, None without labels; its value of the alarm's score."""

    judged: JudgedRows | None
    scores: NDArray


def read_columns(groups: Mapping[str, Any] | None, rows: int, /) -> Columns:
    """Columns of ``rows`` values each, as text without control characters."""
    given = escaped_names(groups or {}, "a column of groups")
    columns = {name: np.asarray(of, object if isinstance(of, list | tuple) else None) for name, of in given.items()}
    for name, values in columns.items():
        if values.shape != (rows,):
            raise ValueError(
                f"groups: the column {name!r} must hold one value for each of the {rows} ID inputs; got shape "
                f"{values.shape} (--groups)."
            )
    return {name: _texts(values) for name, values in columns.items()}


def _texts(values: NDArray) -> NDArray[np.object_]:
    """Each value as text without control characters."""
    plain = values if values.dtype.kind == "O" else values.astype(np.str_)
    texts = [value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value) for value in plain]
    safe = dict(zip(dict.fromkeys(texts), escaped_names(dict.fromkeys(texts), "a group"), strict=True))
    return np.array([safe[text] for text in texts], object)


def break_down(
    columns: Columns, outcomes: RowOutcomes, alarms: Sequence[Alarm], rate: float, /, *, level: float
) -> tuple[Breakdown, ...]:
    """Every column by its values; ``alarms`` are those of one score, rates rising."""
    return tuple(_break_down(name, values, outcomes, alarms, rate, level) for name, values in columns.items())


def _break_down(
    column: str, values: NDArray, outcomes: RowOutcomes, alarms: Sequence[Alarm], rate: float, level: float
) -> Breakdown:
    names = sorted(set(values))
    place = {name: k for k, name in enumerate(names)}
    group_of = np.fromiter((place[value] for value in values), np.intp, len(values))
    count = np.bincount(group_of)

    def sums(x: NDArray) -> NDArray:
        return np.bincount(group_of, weights=x, minlength=len(names))

    flagged = np.array([sums(alarm.threshold.flags(outcomes.scores)) for alarm in alarms])
    wanted = flagged[[alarm.threshold.false_alarm_rate for alarm in alarms].index(rate)]
    right = None if outcomes.judged is None else sums(outcomes.judged.correct)
    sure = None if outcomes.judged is None else sums(outcomes.judged.confidence) / count
    groups = [
        Group(
            names[k],
            int(count[k]),
            None if right is None else _share(right[k], count[k], level),
            None if sure is None else float(sure[k]),
            _share(wanted[k], count[k], level),
            (flagged[:, k] / count[k]).tolist(),
        )
        for k in range(len(names))
    ]
    return Breakdown(column, tuple(sorted(groups, key=_goodness)))


def _goodness(group: Group) -> tuple[float, str]:
    return (group.accuracy.value if group.accuracy else -group.false_alarms.value), group.name


def _share(hits: float, n: int, level: float) -> Share:
    return Share(float(hits / n), *binomial_interval(round(hits), int(n), level=level))
