"""What a guard keeps of its promise: fitted on random halves of the test inputs, without labels, and judged on the others.

A guard that promises at most 5 % false alarms turns away what scores above its threshold; names of numbers end in
"false_alarms", "turned_away" (of other sets) and "accepted_ACC" (the accuracy of what it accepts), all in per cent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import SCORES
from credalens.guard.false_alarms import alarm_threshold
from credalens_paper.measures.assessment import Assessment

Array = NDArray[Any]
RATE: Final = 0.05
HALVES: Final = 20


def kept_numbers(inside: Assessment, labels: Array, /) -> dict[str, float]:
    """By every score the false alarms among the inputs that a guard was not fitted on, and the accuracy of the others.

    >>> scores = np.arange(100.0)
    >>> inside = Assessment({"credal.total": scores}, {"credal": np.eye(2)[np.zeros(100, int)]})
    >>> kept_numbers(inside, np.zeros(100, int))["credal.total.accepted_ACC"]
    100.0
    """
    right = np.asarray(inside.points["credal"].argmax(axis=-1) == labels)
    numbers: dict[str, float] = {}
    for name, scores in _of_catalogue(inside).items():
        judged = [(scores[~learnt] > threshold, right[~learnt]) for learnt, threshold in _fitted(scores)]
        accepted = [correct[~alarms].mean() for alarms, correct in judged if not alarms.all()]
        numbers[f"{name}.false_alarms"] = 100 * float(np.mean([alarms.mean() for alarms, _ in judged]))
        if accepted:
            numbers[f"{name}.accepted_ACC"] = 100 * float(np.mean(accepted))
    return numbers


def turned_away_numbers(inside: Assessment, outside: Assessment, /) -> dict[str, float]:
    """By every score the share of another set that guards turn away which were fitted on halves of the test inputs."""
    return {
        f"{name}.turned_away": 100 * float(np.mean([(others > threshold).mean() for _, threshold in _fitted(scores)]))
        for name, scores in _of_catalogue(inside).items()
        if (others := outside.scores.get(name)) is not None
    }


def _of_catalogue(assessment: Assessment) -> dict[str, Array]:
    """The scores under the catalogue's names; the paper's names for some of them say the same again."""
    return {name: scores for name, scores in assessment.scores.items() if name.partition(".")[2] in SCORES}


def _fitted(scores: Array) -> Iterator[tuple[Array, float]]:
    """Random halves, the same for every score, each with the threshold of a guard that was fitted on it."""
    rng, count = np.random.default_rng(0), len(scores)
    for _ in range(HALVES):
        learnt = np.isin(np.arange(count), rng.permutation(count)[: count // 2])
        yield learnt, alarm_threshold(np.sort(scores[learnt]), RATE)
