"""The inputs worth looking at: the most uncertain, the most contradictory, and mistakes made with certainty.

Many classes are shown as the few that matter, and all the rest added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.members import read_distributions, read_logits
from credalens.core.intervals import intersection_probability
from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.results import ByMeasure, ByMethod, Result

MOST_BARS = 8
"""With more members than this bars become too thin, and each member is a dot."""


@dataclass(frozen=True, eq=False)
class FewClasses:
    """Members (members, entries), bounds and both point predictions (entries,).

    An entry is one of ``classes``; where ``rest`` classes were added up, the last entry is their sum. ``ranked`` are all
    classes, the one of highest intersection probability first.
    """

    classes: NDArray[np.intp]
    rest: int
    ranked: NDArray[np.intp]
    members: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    mean: NDArray[np.float64]
    probability: NDArray[np.float64]


def few_classes(
    members: NDArray, /, *, most: int, true_class: int | None = None, by_probability: bool = False
) -> FewClasses:
    """Members (members, classes) with at most ``most`` entries.

    Where there are more classes, the true one, both predicted ones and those of highest upper probability are kept, in
    their order or, with ``by_probability``, the most probable first.
    """
    lower, upper, mean = members.min(axis=0), members.max(axis=0), members.mean(axis=0)
    probability = np.asarray(intersection_probability(lower, upper))
    every, ranked = np.arange(len(upper)), np.argsort(-probability, kind="stable")
    if len(upper) <= most:
        return FewClasses(every, 0, ranked, members, lower, upper, mean, probability)
    always = [int(ranked[0]), int(mean.argmax()), *([] if true_class is None else [true_class])]
    kept = _kept(upper, always, most - 1)
    if by_probability:
        kept = ranked[np.isin(ranked, kept)]
    rest = np.setdiff1d(every, kept)
    low, high = _event_bounds(lower, upper, kept, rest)
    return FewClasses(
        kept,
        len(rest),
        ranked,
        np.c_[members[:, kept], members[:, rest].sum(axis=1)],
        np.append(lower[kept], low),
        np.append(upper[kept], high),
        np.append(mean[kept], mean[rest].sum()),
        np.append(probability[kept], probability[rest].sum()),
    )


def _kept(upper: NDArray, always: list[int], count: int) -> NDArray[np.intp]:
    rank = upper.copy()
    rank[always] += 1
    return np.sort(np.argsort(-rank, kind="stable")[:count])


def _event_bounds(
    lower: NDArray, upper: NDArray, kept: NDArray[np.intp], rest: NDArray[np.intp]
) -> tuple[float, float]:
    """The lower and upper probability, within the credal set, that the class is one of the rest."""
    low = max(lower[rest].sum(), 1 - upper[kept].sum())
    return float(low), float(max(low, min(upper[rest].sum(), 1 - lower[kept].sum())))


def two_and_rest(members: NDArray, first: int, second: int, /) -> NDArray:
    """Members (members, classes) over three classes: two of them, and the sum of the others."""
    rest = np.delete(members, [first, second], axis=1).sum(axis=1)
    return np.stack([members[:, first], members[:, second], rest], axis=1)


MOST_CLASSES = 10
MOST_SAMPLES, MOST_OF_A_GROUP = 72, 5


@dataclass(frozen=True)
class ThreeClasses(Result):
    """The members over three classes, for the triangle; None as a class is the rest."""

    classes: list[int | None]
    members: list[list[float]]


@dataclass(frozen=True)
class MemberView(Result):
    """What every member says of one input, to five digits, for at most ten entries of a chart.

    :ivar predicted: the class of the highest intersection probability.
    :ivar averaged: of the highest mean.
    :ivar classes: the classes of the entries.
    :ivar others: how many classes the last entry adds up, 0 for none.
    """

    label: int | None
    predicted: int
    averaged: int
    classes: list[int]
    others: int
    members: list[list[float]]
    lower: list[float]
    upper: list[float]
    mean: list[float]
    probability: list[float]
    simplex: ThreeClasses | None


@dataclass(frozen=True, kw_only=True)
class Sample(MemberView):
    """An input worth a look: its data set and row, why it was chosen, and its uncertainty."""

    set: str
    row: int
    groups: list[str]
    dispute: float
    scores: ByMethod[ByMeasure[float]]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, first which input it is and why it was chosen."""
        plain = super().as_dict()
        first = ("set", "row", "groups", "label", "dispute", "scores")
        return {name: plain.pop(name) for name in first} | plain


def worst_samples(id_set: ScoredSet, ood_sets: list[ScoredSet], labels: NDArray | None, /) -> tuple[Sample, ...]:
    """A few inputs of every data set, each with what every member says of it.

    - "uncertain": highest total uncertainty; where it is the same, highest entropy of the mean.
    - "contradictory": the largest share of probability on which the members do not agree.
    - "missed": OOD inputs of lowest epistemic uncertainty, which a threshold finds last.
    - "wrong": ID inputs with a wrong label and the lowest total uncertainty.
    """
    count = max(1, min(MOST_OF_A_GROUP, MOST_SAMPLES // (3 * (1 + len(ood_sets)))))
    samples = _samples(id_set, _worst_id(id_set, labels), labels, count)
    for ood_set in ood_sets:
        samples += _samples(ood_set, _worst_ood(ood_set), None, count)
    return tuple(samples)


def _worst(scored: ScoredSet) -> dict[str, NDArray[np.intp]]:
    total, of_mean = scored.uncertainty.credal.total, scored.uncertainty.classical.total
    return {"uncertain": np.lexsort((-of_mean, -total)), "contradictory": _rising(-scored.dispute)}


def _worst_id(scored: ScoredSet, labels: NDArray | None) -> dict[str, NDArray[np.intp]]:
    """Group -> rows, the worst first."""
    if labels is None or scored.predicted is None:
        return _worst(scored)
    wrong = np.flatnonzero(scored.predicted.credal != labels)
    return _worst(scored) | {"wrong": wrong[_rising(scored.uncertainty.credal.total[wrong])]}


def _worst_ood(scored: ScoredSet) -> dict[str, NDArray[np.intp]]:
    return _worst(scored) | {"missed": _rising(scored.uncertainty.credal.epistemic)}


def _rising(values: NDArray) -> NDArray[np.intp]:
    return np.argsort(values, kind="stable")


def _samples(scored: ScoredSet, worst: dict[str, NDArray[np.intp]], labels: NDArray | None, count: int) -> list[Sample]:
    groups: dict[int, list[str]] = {}
    for group, rows in worst.items():
        for row in rows[:count].tolist():
            groups.setdefault(row, []).append(group)
    rows = np.array(sorted(groups), dtype=np.intp)
    read = read_logits if scored.source.logits else read_distributions
    members = dict(zip(rows.tolist(), np.moveaxis(read(scored.source.take(rows)).array, 1, 0), strict=True))
    return [
        _sample(scored, row, of_row, members[row], None if labels is None else int(labels[row]))
        for row, of_row in groups.items()
    ]


def _sample(scored: ScoredSet, row: int, groups: list[str], members: NDArray, label: int | None) -> Sample:
    def score(method: str, measure: str) -> float:
        return float(scored.of(method, measure)[row])

    return Sample(
        **vars(view_members(members, label)),
        set=scored.name,
        row=row,
        groups=groups,
        dispute=float(scored.dispute[row]),
        scores=ByMethod.make(lambda method: ByMeasure.make(lambda measure: score(method, measure))),
    )


def view_members(members: NDArray, label: int | None, /) -> MemberView:
    """One input's members, (members, classes), whose true class is ``label`` where it is known."""
    few = few_classes(members, most=MOST_CLASSES, true_class=label)
    return MemberView(
        label,
        int(few.ranked[0]),
        int(few.classes[few.mean[: len(few.classes)].argmax()]),
        few.classes.tolist(),
        few.rest,
        [_digits(row) for row in few.members],
        _digits(few.lower),
        _digits(few.upper),
        _digits(few.mean),
        _digits(few.probability),
        _three_classes(members, few.ranked),
    )


def _three_classes(members: NDArray, ranked: NDArray[np.intp]) -> ThreeClasses | None:
    """All three classes there are, or the two most probable ones and the rest."""
    if members.shape[1] < 3:
        return None
    if members.shape[1] == 3:
        return ThreeClasses([0, 1, 2], [_digits(row) for row in members])
    first, second = ranked[:2].tolist()
    return ThreeClasses([first, second, None], [_digits(row) for row in two_and_rest(members, first, second)])


def _digits(values: NDArray) -> list[float]:
    return [round(float(value), 5) for value in values]
