"""From predictions to numbers: scores and point predictions of one run on one set, then metrics of them.

Numbers carry names such as "credal.EU.AUROC" or "classical.ECE"; a network that predicts a Dirichlet is neither
classical nor credal, and its numbers begin with "single". ACC, AUROC and AUPRC are in per cent as in the paper,
ECE is a fraction, NLL in nats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens import (
    ClassicalUncertainty,
    CredalPrediction,
    MemberSummary,
    approximate_intervals,
    classical_uncertainty,
    generalized_hartley,
    intersection_probability,
    lower_entropy,
    probability_intervals,
    upper_entropy,
    wrap,
)
from credalens.core.intervals import left_out
from credalens.core.scores import SCORES
from credalens.evaluation import calibration_metrics, ood_metrics

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
    such as "trim10": credal sets without a tenth of the members at each end.
    """

    scores: frozenset[str] = frozenset()
    trims: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: Iterable[str], /) -> Extras:
        """The extras that numbers of these names need.

        >>> sorted(Extras.of(["credal.GH.AUROC", "trim10.ECE", "classical.mean_pairwise_kl.AUROC"]).scores)
        ['GH', 'mean_pairwise_kl']
        """
        parts = [name.split(".") for name in names]
        asked = {part[1] for part in parts if len(part) > 1}
        trims = frozenset(part[0] for part in parts if part[0].startswith(TRIM))
        return cls(frozenset(asked & {"GH", *SCORES}), trims)


TRIM: Final = "trim"
MOST_VALUES: Final = 2**26
"""Predictions of more values are assessed in parts, since trimming copies and sorts them in float64."""
NO_EXTRAS: Final = Extras()


def assess_members(
    members: Array, /, *, J: int | None = None, extras: Extras = NO_EXTRAS, threads: int | None = None
) -> Assessment:
    """Classical and credal uncertainty of members (N, n, classes); with `J` the credal one of the classes PIA keeps."""
    if members.size > MOST_VALUES and members.shape[1] > 1:
        halves = np.array_split(members, 2, axis=1)
        one, other = (assess_members(half, J=J, extras=extras, threads=threads) for half in halves)
        scores = {name: np.concatenate([values, other.scores[name]]) for name, values in one.scores.items()}
        points = {name: np.concatenate([values, other.points[name]]) for name, values in one.points.items()}
        return Assessment(scores, points)
    if J is None or members.shape[-1] <= J:
        shares = {name: int(name.removeprefix(TRIM)) / 100 for name in sorted(extras.trims)}
        trims = {name: share if left_out(share, len(members)) else 0 for name, share in shares.items()}
        trimmed = {name: wrap(members, trim=trim, threads=threads) for name, trim in trims.items()}
        return _assess(wrap(members, threads=threads), extras, trimmed)
    lower, upper = probability_intervals(members, threads=threads)
    reduced = approximate_intervals(lower, upper, J)
    total = upper_entropy(*reduced, threads=threads)
    epistemic = np.maximum(total - lower_entropy(*reduced, threads=threads), 0)
    scores = _scores(classical_uncertainty(members, threads=threads), total, epistemic)
    if "GH" in extras.scores:
        scores["credal.GH"] = generalized_hartley(*reduced, threads=threads)
    rows = members.astype(np.float64)  # of narrow floats they sum to one only after they are rescaled
    mean = np.asarray((rows / rows.sum(axis=-1, keepdims=True)).mean(axis=0))
    return Assessment(scores, {"classical": mean, "credal": intersection_probability(lower, upper)})


def assess_summary(summary: MemberSummary, /, *, extras: Extras = NO_EXTRAS, threads: int | None = None) -> Assessment:
    """The same from the sums over many members."""
    return _assess(summary.prediction(threads=threads), extras, {})


def _assess(prediction: CredalPrediction, extras: Extras, trimmed: Mapping[str, CredalPrediction]) -> Assessment:
    scores = _scores(prediction.classical, prediction.total, prediction.epistemic)
    points = {"classical": prediction.mean, "credal": prediction.probability}
    for name in sorted(extras.scores):
        score = SCORES["hartley" if name == "GH" else name]
        scores[f"{'classical' if score.averaged else 'credal'}.{name}"] = prediction.score(score.name)
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
    """Uncertainty of predicted Dirichlet concentrations (n, classes) and their mean."""
    import torch

    from credalens_paper.training.losses import dirichlet_uncertainty, expected_probability

    tensor = torch.from_numpy(np.array(alpha, np.float64))
    uncertainty = dirichlet_uncertainty(tensor)
    scores = {"single.EU": uncertainty.epistemic.numpy(), "single.TU": uncertainty.total.numpy()}
    return Assessment(scores, {"single": expected_probability(tensor).numpy()})


def overconfident(members: Array, rng: np.random.Generator, /) -> Array:
    """A copy of members (N, n, classes) in which one random member of each input is one-hot at its own best class."""
    changed = np.array(members)
    count, inputs, _ = changed.shape
    chosen, place = rng.integers(0, count, inputs), np.arange(inputs)
    best = changed[chosen, place].argmax(axis=-1)
    changed[chosen, place] = 0
    changed[chosen, place, best] = 1
    return changed


def prediction_numbers(assessment: Assessment, labels: Array, /) -> dict[str, float]:
    """ACC, ECE and NLL of every variant's point prediction."""
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
    """The mean TU, AU and EU of every variant, in bits."""
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
    """The name of a number."""
    return ".".join(part for part in (variant or "single", measure, metric) if part)
