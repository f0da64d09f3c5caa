"""What a guard keeps of its promise: fitted on random halves of the test inputs, without labels, and judged on the others.

A guard that promises at most 5 % false alarms turns away what scores above its threshold; names of numbers end in
"false_alarms", "turned_away" (of other sets) and "accepted_ACC" (how often the intersection probability is right about what
it accepts, whatever the score), all in per cent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import SCORES
from credalens.guard.false_alarms import alarm_threshold
from credalens_paper.measures.assessment import Assessment

Array = NDArray[Any]
RATE: Final = 0.05


@dataclass(frozen=True)
class Halves:
    """Random halves of some inputs, always the same ones for a seed."""

    seed: int
    count: int

    def fitted(self, scores: Array, /) -> Iterator[tuple[Array, float]]:
        """Which inputs each half holds, and the threshold of a guard that was fitted on their scores."""
        rng, inputs = np.random.default_rng(self.seed), len(scores)
        for _ in range(self.count):
            learnt = np.isin(np.arange(inputs), rng.permutation(inputs)[: inputs // 2])
            yield learnt, alarm_threshold(np.sort(scores[learnt]), RATE)


def kept_numbers(inside: Assessment, labels: Array, halves: Halves, /) -> dict[str, float]:
    """By every score the false alarms among the inputs that a guard was not fitted on, and the accuracy of the others.

    >>> inside = Assessment({"credal.total": np.arange(100.0)}, {"credal": np.eye(2)[np.zeros(100, int)]})
    >>> kept_numbers(inside, np.zeros(100, int), Halves(0, 2))["credal.total.accepted_ACC"]
    100.0
    """
    right = np.asarray(inside.points["credal"].argmax(axis=-1) == labels)
    numbers: dict[str, float] = {}
    for name, scores in _of_catalogue(inside).items():
        judged = [(scores[~learnt] > threshold, right[~learnt]) for learnt, threshold in halves.fitted(scores)]
        numbers[f"{name}.false_alarms"] = _percent([alarms for alarms, _ in judged])
        numbers[f"{name}.accepted_ACC"] = _percent([correct[~alarms] for alarms, correct in judged])
    return numbers


def turned_away_numbers(inside: Assessment, outside: Assessment, halves: Halves, /) -> dict[str, float]:
    """By every score the share of another set that guards turn away which were fitted on halves of the test inputs."""
    other = _of_catalogue(outside)
    return {
        f"{name}.turned_away": _percent([other[name] > threshold for _, threshold in halves.fitted(scores)])
        for name, scores in _of_catalogue(inside).items()
    }


def _of_catalogue(assessment: Assessment) -> dict[str, Array]:
    """The scores under the catalogue's names; the paper's names for some of them say the same again."""
    return {name: scores for name, scores in assessment.scores.items() if name.partition(".")[2] in SCORES}


def _percent(parts: list[Array]) -> float:
    return 100 * float(np.mean([part.mean() for part in parts]))
