"""The inputs worth looking at: the most uncertain, the most contradictory, and mistakes made with certainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.member_array import read_distributions, read_logits
from credalens.evaluation.results import ByMeasure, ByMethod, Result
from credalens.evaluation.scored_set import ScoredSet
from credalens.evaluation.single_inputs.merged_classes import few_classes, two_and_rest

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
