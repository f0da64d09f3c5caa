"""What guards and sets of classes keep of their promises: fitted on random halves of the test inputs, judged on the others.

Names of numbers end in what was measured, in per cent but for the size of sets:

- a guard that promises at most 5 % false alarms, fitted without labels: "false_alarms", "accepted_ACC" (how often the
  intersection probability is right about what it accepts) and "turned_away" (of other sets);
- a guard that promises, with 95 % confidence, at most half of the error rate that the intersection probability has on all
  test inputs: "halved_accepted" (the share it accepts), "halved_left" (the error rate of these, in per cent of that
  error rate: at most 50 is promised), "halved_broken" (in how many halves it is more) and "halved_turned_away" (of
  other sets). A sound guard may be above its promise in a tenth of the halves: one whose test has just passed
  is above it with probability 1 - Phi(1.645 / sqrt(2)) = 0.12 by the normal law, since both halves are samples;
- sets that promise to hold the true class of 95 % of the inputs: "coverage" and "classes_in_set".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import top_class
from credalens.core.scores import SCORES
from credalens.guard.binomial import alarm_threshold, conformal_quantile
from credalens.guard.conformal_sets import SetScore
from credalens.guard.risk import Risk, last_passed, limits_of, plan_of, risks_at
from credalens.guard.signature import CalibrationData, Signature, Slack, slack_of
from credalens_paper.measures.assessment import Assessment

Array = NDArray[Any]
RATE: Final = 0.05  # of false alarms, and of sets without the true class
CONFIDENCE: Final = 0.95
HALF: Final = 0.5  # the part of a network's error rate that a guard promises to leave


@dataclass(frozen=True)
class Halves:
    """Random halves of some inputs, always the same ones for a seed."""

    seed: int
    count: int

    def of(self, inputs: int, /) -> Iterator[Array]:
        """Which inputs each half holds."""
        rng = np.random.default_rng(self.seed)
        for _ in range(self.count):
            yield np.isin(np.arange(inputs), rng.permutation(inputs)[: inputs // 2])

    def fitted(self, scores: Array, /) -> Iterator[tuple[Array, float]]:
        """The halves, each with the threshold of a guard that was fitted on its scores."""
        for learnt in self.of(len(scores)):
            yield learnt, alarm_threshold(np.sort(scores[learnt]), RATE)


def kept_numbers(inside: Assessment, labels: Array, halves: Halves, /) -> dict[str, float]:
    """What guards by every score, and sets by every point prediction, keep on the inputs that they were not fitted on."""
    wrong = _wrong(inside, labels)
    numbers: dict[str, float] = {}
    for name, scores in _of_catalogue(inside).items():
        slack = _slack(name, inside)
        lowest = slack.lowest(scores)
        judged = [(lowest[~learnt] > threshold, wrong[~learnt]) for learnt, threshold in halves.fitted(scores)]
        numbers[f"{name}.false_alarms"] = _percent(alarms.mean() for alarms, _ in judged)
        numbers[f"{name}.accepted_ACC"] = _percent(1 - errors[~alarms].mean() for alarms, errors in judged)
        kept = _kept_errors(scores, wrong, halves, slack)
        numbers |= {f"{name}.{metric}": value for metric, value in kept.items()}
    for variant, point in inside.points.items():
        numbers |= {f"{variant}.{metric}": value for metric, value in _kept_sets(point, labels, halves).items()}
    return numbers


def turned_away_numbers(inside: Assessment, outside: Assessment, labels: Array, halves: Halves, /) -> dict[str, float]:
    """By every score the share of another set that guards turn away which were fitted on halves of the test inputs."""
    other, wrong = _of_catalogue(outside), _wrong(inside, labels)
    numbers: dict[str, float] = {}
    for name, scores in _of_catalogue(inside).items():
        slack = _slack(name, inside)
        lowest = slack.lowest(other[name])
        thresholds = (threshold for _, threshold in halves.fitted(scores))
        limits = (slack.lowest(limit) for _, limit in _limits(scores, wrong, halves, slack))
        numbers[f"{name}.turned_away"] = _percent((lowest > threshold).mean() for threshold in thresholds)
        numbers[f"{name}.halved_turned_away"] = _percent((other[name] >= limit).mean() for limit in limits)
    return numbers


def _slack(name: str, assessment: Assessment) -> Slack:
    """What guards take for rounding of a score, as "credal.total", in bits."""
    return slack_of(name.partition(".")[2], classes=assessment.points["credal"].shape[-1], base=2)


def _wrong(inside: Assessment, labels: Array) -> Array:
    """Where the intersection probability names another class, ties broken by the average as `Guard` does."""
    return np.asarray(top_class(inside.points["credal"], ties=inside.points["classical"]) != labels)


def _kept_errors(scores: Array, wrong: Array, halves: Halves, slack: Slack) -> dict[str, float]:
    """Of guards that promise to halve the errors; one that can promise nothing accepts nothing, and makes no error."""
    usual = wrong.mean()
    shares, left = [], []
    for learnt, limit in _limits(scores, wrong, halves, slack):
        accepted = scores[~learnt] < slack.lowest(limit)
        shares.append(accepted.mean())
        left.append(wrong[~learnt][accepted].mean() / usual if accepted.any() and usual else 0.0)
    return {
        "halved_accepted": _percent(shares),
        "halved_left": _percent(left),
        "halved_broken": _percent(part > HALF for part in left),
    }


def _limits(scores: Array, wrong: Array, halves: Halves, slack: Slack) -> Iterator[tuple[Array, float]]:
    """The halves, each with the limit below which scores are accepted by a guard that promises to halve the errors."""
    right = np.zeros(len(scores) // 2, np.int64)  # of two classes the true one is always the first
    for learnt in halves.of(len(scores)):
        if not wrong.any():
            yield learnt, math.inf
            continue
        known, errors = scores[learnt], wrong[learnt].astype(np.int64)
        limits = limits_of(np.sort(known), math.inf, slack)
        data = CalibrationData(Signature(2, 1, 0.0), "total", "intersection", known, errors, right)
        tested = risks_at(data, [Risk(HALF * wrong.mean())], limits, CONFIDENCE)
        passed = last_passed(tested, limits, plan_of(tested, limits))
        yield learnt, -math.inf if passed is None else float(limits.values[passed])


def _kept_sets(point: Array, labels: Array, halves: Halves) -> dict[str, float]:
    """Of sets by one minus the probability of a class: LAC of the average, "intersection" of the credal set."""
    unfit, truth = 1 - point.astype(np.float64), labels[:, None]
    own, best = np.take_along_axis(unfit, truth, axis=1)[:, 0], unfit.argmin(axis=1)[:, None]
    covered, sizes = [], []
    for learnt in halves.of(len(labels)):
        sets = SetScore().lowest(unfit[~learnt], 0.0) <= conformal_quantile(own[learnt], RATE)
        np.put_along_axis(sets, best[~learnt], True, axis=1)  # also where the set would be empty
        covered.append(np.take_along_axis(sets, truth[~learnt], axis=1).mean())
        sizes.append(sets.sum(axis=1).mean())
    return {"coverage": _percent(covered), "classes_in_set": float(np.mean(sizes))}


def _of_catalogue(assessment: Assessment) -> dict[str, Array]:
    """The scores under the catalogue's names; the paper's names for some of them say the same again."""
    return {name: scores for name, scores in assessment.scores.items() if name.partition(".")[2] in SCORES}


def _percent(shares: Iterable[float]) -> float:
    return 100 * float(np.mean(list(shares)))
