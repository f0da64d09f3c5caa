"""From predictions to numbers: scores and point predictions of one run on one set, then metrics of them.

Numbers carry names such as "credal.EU.AUROC" or "classical.ECE"; a network that predicts a Dirichlet is neither
classical nor credal, and its numbers begin with "single". ACC, AUROC and AUPRC are in per cent as in the paper,
ECE is a fraction, NLL in nats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.classical import ClassicalUncertainty, classical_uncertainty
from credalens.core.entropy import lower_entropy, upper_entropy
from credalens.core.hartley import generalized_hartley
from credalens.core.intervals import approximate_intervals, intersection_probability, left_out, probability_intervals
from credalens.core.members import MemberSummary
from credalens.core.scores import SCORES
from credalens.evaluation import calibration_metrics, ood_metrics
from credalens.prediction import CredalPrediction, wrap
from credalens_paper.experiments.cell_keys import ALARM_METRICS, ERROR_METRICS, SET_METRICS, TURNED_AWAY
from credalens_paper.experiments.tables import DETECTION

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Assessment:
    """One run on one set: scores, such as "credal.EU", of shape (n,) and point predictions (n, classes) by variant."""

    scores: Mapping[str, Array]
    points: Mapping[str, Array]


@dataclass(frozen=True)
class Extras:
    """What is computed only where a number asks for it.

    `scores` of the catalogue, of which the generalized Hartley measure is called GH as in the paper, and `trims`, variants
    such as "trim10": credal sets without a tenth of the members at each end. `detection` sorts the scores of two sets,
    which takes longer than all else; `guards` are fitted on halves of the test inputs.
    """

    scores: frozenset[str] = frozenset()
    trims: frozenset[str] = frozenset()
    detection: bool = False
    guards: bool = False

    @classmethod
    def of(cls, names: Iterable[str], /) -> Extras:
        """The extras that numbers of these names need.

        >>> sorted(Extras.of(["credal.GH.AUROC", "trim10.ECE", "classical.mean_pairwise_kl.AUROC"]).scores)
        ['GH', 'mean_pairwise_kl']
        """
        parts = [name.split(".") for name in names]
        asked = {part[1] for part in parts if len(part) > 1}
        trims = frozenset(part[0] for part in parts if part[0].startswith(TRIM))
        detection = any(part[-1] in DETECTION for part in parts)
        guards = any(part[-1] in GUARD_METRICS for part in parts)
        return cls(frozenset(asked & {"GH", *SCORES}), trims, detection, guards)


TRIM: Final = "trim"
GUARD_METRICS: Final = frozenset({*ALARM_METRICS, *ERROR_METRICS, *SET_METRICS, *TURNED_AWAY})
"""Metrics of guards and sets, `measures.guarding`."""
MOST_VALUES: Final = 2**26
"""Predictions of more values are assessed in parts, since trimming copies and sorts them in float64."""
NO_EXTRAS: Final = Extras()


def assess_members(
    members: Array, /, *, J: int | None = None, extras: Extras = NO_EXTRAS, threads: int | None = None
) -> Assessment:
    """Classical and credal uncertainty of members (N, n, classes); with `J` the credal one of the classes PIA keeps.

    >>> assessment = assess_members(np.array([[[0.9, 0.1]], [[0.6, 0.4]]]))
    >>> sorted(assessment.scores)
    ['classical.EU', 'classical.TU', 'credal.EU', 'credal.TU']
    """
    if members.size > MOST_VALUES and members.shape[1] > 1:
        halves = np.array_split(members, 2, axis=1)
        return _joined([assess_members(half, J=J, extras=extras, threads=threads) for half in halves])
    if J is None or members.shape[-1] <= J:
        trimmed = {name: _trimmed(members, name, threads) for name in sorted(extras.trims)}
        return _assess(wrap(members, threads=threads), extras, trimmed)
    lower, upper = probability_intervals(members, threads=threads)
    reduced = approximate_intervals(lower, upper, J)
    total = upper_entropy(*reduced, threads=threads)
    epistemic = np.maximum(total - lower_entropy(*reduced, threads=threads), 0)
    scores = _scores(classical_uncertainty(members, threads=threads), total, epistemic)
    if "GH" in extras.scores:
        scores["credal.GH"] = generalized_hartley(*reduced, threads=threads)
    points = {"classical": _rescaled_mean(members), "credal": intersection_probability(lower, upper)}
    return Assessment(scores, points)


def _joined(parts: Sequence[Assessment]) -> Assessment:
    """One assessment of the inputs of all parts."""
    scores, points = (
        {name: np.concatenate([getattr(part, field)[name] for part in parts]) for name in getattr(parts[0], field)}
        for field in ("scores", "points")
    )
    return Assessment(scores, points)


def _rescaled_mean(members: Array) -> Array:
    """The averaged prediction; rows of narrow floats sum to one only after they are rescaled."""
    rows = members.astype(np.float64)
    return np.asarray((rows / rows.sum(axis=-1, keepdims=True)).mean(axis=0))


def assess_summary(summary: MemberSummary, /, *, extras: Extras = NO_EXTRAS, threads: int | None = None) -> Assessment:
    """The same from the sums over many members."""
    return _assess(summary.prediction(threads=threads), extras, {})


def _trimmed(members: Array, name: str, threads: int | None) -> CredalPrediction:
    share = int(name.removeprefix(TRIM)) / 100
    return wrap(members, trim=share if left_out(share, len(members)) else 0, threads=threads)


def _assess(prediction: CredalPrediction, extras: Extras, trimmed: Mapping[str, CredalPrediction]) -> Assessment:
    scores = _scores(prediction.classical, prediction.total, prediction.epistemic)
    points = {"classical": prediction.mean, "credal": prediction.probability}
    for name in sorted(extras.scores):
        score = SCORES["hartley" if name == "GH" else name]
        scores[f"{'classical' if score.averaging else 'credal'}.{name}"] = prediction.score(score.name)
    for variant, other in trimmed.items():
        scores |= {f"{variant}.EU": other.epistemic, f"{variant}.TU": other.total}
        points[variant] = other.probability
    return Assessment(scores, points)


def _scores(classical: ClassicalUncertainty, total: Array, epistemic: Array) -> dict[str, Array]:
    return {
        "classical.EU": classical.epistemic,
        "classical.TU": classical.total,
        "credal.EU": epistemic,
        "credal.TU": total,
    }


def assess_concentrations(alpha: Array, /) -> Assessment:
    """Uncertainty of predicted Dirichlet concentrations (n, classes) and their mean.

    >>> assess_concentrations(np.ones((1, 4))).scores["single.TU"]
    array([2.])
    """
    import torch

    from credalens_paper.training.dirichlet import dirichlet_uncertainty, expected_probability

    tensor = torch.from_numpy(np.array(alpha, np.float64))
    uncertainty = dirichlet_uncertainty(tensor)
    scores = {"single.EU": uncertainty.epistemic.numpy(), "single.TU": uncertainty.total.numpy()}
    return Assessment(scores, {"single": expected_probability(tensor).numpy()})


def overconfident(members: Array, rng: np.random.Generator, /) -> Array:
    """A copy of members (N, n, classes) in which one random member of each input is one-hot at its own best class.

    >>> members = np.array([[[0.9, 0.1]], [[0.6, 0.4]]])
    >>> sorted(overconfident(members, np.random.default_rng(0)).max(axis=-1).ravel().tolist())[-1]
    1.0
    """
    changed = np.array(members)
    count, inputs, _ = changed.shape
    chosen, place = rng.integers(0, count, inputs), np.arange(inputs)
    best = changed[chosen, place].argmax(axis=-1)
    changed[chosen, place] = 0
    changed[chosen, place, best] = 1
    return changed


def prediction_numbers(assessment: Assessment, labels: Array, /) -> dict[str, float]:
    """ACC, ECE and NLL of every variant's point prediction.

    >>> prediction_numbers(assess_members(np.array([[[0.9, 0.1]], [[0.7, 0.3]]])), np.array([0]))["credal.ACC"]
    100.0
    """
    numbers: dict[str, float] = {}
    for variant, probability in assessment.points.items():
        metrics = calibration_metrics(probability, labels)
        numbers |= {
            f"{variant}.ACC": 100 * metrics.accuracy,
            f"{variant}.ECE": metrics.ece,
            f"{variant}.NLL": metrics.nll,
        }
    return numbers


def mean_numbers(assessment: Assessment, /) -> dict[str, float]:
    """The mean TU, AU and EU of every variant, in bits.

    >>> mean_numbers(assess_members(np.array([[[0.5, 0.5]], [[0.5, 0.5]]])))["credal.AU.mean"]
    1.0
    """
    numbers: dict[str, float] = {}
    for variant in assessment.points:
        total, epistemic = (float(assessment.scores[f"{variant}.{name}"].mean()) for name in ("TU", "EU"))
        numbers |= {
            f"{variant}.TU.mean": total,
            f"{variant}.AU.mean": total - epistemic,
            f"{variant}.EU.mean": epistemic,
        }
    return numbers


def detection_numbers(inside: Assessment, outside: Assessment, /) -> dict[str, float]:
    """AUROC and AUPRC of every score, with the outside set as positive."""
    numbers: dict[str, float] = {}
    for name in inside.scores.keys() & outside.scores.keys():
        metrics = ood_metrics(inside.scores[name], outside.scores[name])
        numbers |= {f"{name}.AUROC": 100 * metrics.auroc, f"{name}.AUPRC": 100 * metrics.auprc}
    return dict(sorted(numbers.items()))


def number_name(variant: str | None, measure: str | None, metric: str, /) -> str:
    """The name of a number.

    >>> number_name("credal", "EU", "AUROC"), number_name(None, None, "ECE")
    ('credal.EU.AUROC', 'single.ECE')
    """
    return ".".join(part for part in (variant or "single", measure, metric) if part)
