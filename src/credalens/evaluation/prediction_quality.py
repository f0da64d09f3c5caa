"""Are the predictions on labelled data right, calibrated, and better where uncertain inputs are turned away?

Two point predictions are compared on the same inputs. Which one to use follows from NLL and ECE.
The rule: the intersection probability stays unless the mean is clearly better in NLL or ECE and clearly worse in neither;
"clearly" is a paired test with Holm's correction for the two, and a difference that is not `NEGLIGIBLE`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import short_repr
from credalens.checks.arrays import warn_shifted_labels
from credalens.evaluation import labelled
from credalens.evaluation.data_sets import ScoredSet
from credalens.evaluation.intervals import Resampling, compare_means, compare_shares, holm
from credalens.evaluation.labelled import CalibrationMetrics, RejectionCurve, ReliabilityCurve, SetMetrics
from credalens.evaluation.results import ByMeasure, ByMethod, Comparison, Result, renamed

NEGLIGIBLE: Final = 1e-3
"""A difference below it, a tenth of a percentage point of ECE or a thousandth of NLL, is of no account."""
POINTS = 160


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Every input, (rows,): its label, whether the class named is right, how sure, and -ln p(label)."""

    labels: NDArray[np.int64]
    correct: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    surprise: NDArray[np.float64]

    __repr__ = short_repr

    @classmethod
    def of(cls, probs: NDArray, labels: NDArray, predicted: NDArray, /) -> JudgedRows:
        """Judge probabilities (rows, classes) and the classes that they name."""
        of_label = probs[np.arange(len(probs)), labels].astype(np.float64)
        surprise = -np.log(np.maximum(of_label, labelled.NLL_FLOOR))
        return cls(labels, predicted == labels, probs.max(axis=-1).astype(np.float64), surprise)


def compare_points(a: JudgedRows, b: JudgedRows, /, *, bins: int, resampling: Resampling) -> dict[str, Comparison]:
    """Accuracy, ECE and NLL of a minus those of b, on the same inputs."""
    gaps = [rows.confidence - rows.correct for rows in (a, b)]
    places = [labelled.confidence_bins(rows.confidence, bins)[1] for rows in (a, b)]
    n, generator = len(a.labels), np.random.default_rng(resampling.seed)

    def errors(rows: NDArray[np.int64] | slice) -> tuple[float, float]:
        sums = (np.bincount(at[rows], weights=gap[rows], minlength=bins) for gap, at in zip(gaps, places, strict=True))
        of_a, of_b = (float(np.abs(total).sum() / n) for total in sums)
        return of_a, of_b

    # The paired bootstrap: each replicate draws the same inputs for both.
    draws = (errors(generator.integers(n, size=n)) for _ in range(resampling.replicates))
    drawn = np.array([of_a - of_b for of_a, of_b in draws])
    return {
        "accuracy": compare_shares("accuracy", a.correct, b.correct, level=resampling.level),
        "ece": resampling.compare("ece", *errors(slice(None)), drawn, n, 0),
        "nll": compare_means("nll", a.surprise, b.surprise, level=resampling.level),
    }


@dataclass(frozen=True)
class PointChoice(Result):
    """The point prediction to use, and what speaks for it: NLL and ECE of the intersection probability minus those of the mean.

    Their p-values have Holm's correction for both metrics.
    """

    prediction: Literal["intersection", "mean"]
    nll: Comparison
    ece: Comparison
    level: float

    @property
    def method(self) -> Literal["credal", "averaged"]:
        """Whose point prediction it is."""
        return "credal" if self.prediction == "intersection" else "averaged"

    @property
    def clear(self) -> list[Comparison]:
        """The metrics that clearly speak for either of the two: the difference is neither chance nor negligible."""
        both = (self.nll, self.ece)
        return [one for one in both if one.p_value < 1 - self.level and abs(one.difference) >= NEGLIGIBLE]


def choose_point(judged: ByMethod[JudgedRows], /, *, bins: int, resampling: Resampling) -> PointChoice:
    """Apply the rule above to the intersection probability and the mean."""
    compared = compare_points(judged.credal, judged.averaged, bins=bins, resampling=resampling)
    p_values = holm({metric: compared[metric].p_value for metric in ("nll", "ece")})
    nll, ece = (replace(compared[metric], p_value=p_value) for metric, p_value in p_values.items())
    choice = PointChoice("intersection", nll, ece, resampling.level)
    worse = [one.difference > 0 for one in choice.clear]
    return replace(choice, prediction="mean") if worse and all(worse) else choice


@dataclass(frozen=True, eq=False)
class PointQuality(CalibrationMetrics):
    """Accuracy, ECE, NLL and Brier score of one point prediction, with its reliability curve."""

    reliability: ReliabilityCurve


@dataclass(frozen=True, eq=False)
class Calibration(ByMethod[PointQuality]):
    """The intersection probability of credal sets and the averaged probability."""

    intersection: ClassVar[Any] = renamed("intersection", "credal")


@dataclass(frozen=True, eq=False)
class PredictionQuality:
    """The part of an ``Evaluation`` that needs labels; nothing without any."""

    point: PointChoice | None = None
    calibration: Calibration | None = None
    selective: ByMeasure[ByMethod[RejectionCurve]] | None = None
    sets: dict[str, SetMetrics] | None = None
    judged: JudgedRows | None = None


def prediction_quality(
    scored: ScoredSet, labels: NDArray | None, /, *, bins: int, resampling: Resampling
) -> PredictionQuality:
    """Judge the predictions of a data set with labels; each uncertainty its own point prediction."""
    points, predicted = scored.points, scored.predicted
    if labels is None or points is None or predicted is None:
        return PredictionQuality()
    warn_shifted_labels(labels, predicted.credal, stacklevel=4)
    judged = ByMethod.make(lambda method: JudgedRows.of(points.of(method), labels, predicted.of(method)))

    def quality(method: str) -> PointQuality:
        given: dict[str, Any] = {"bins": bins, "predicted": predicted.of(method)}
        metrics = labelled.calibration_metrics(points.of(method), labels, **given)
        return PointQuality(**vars(metrics), reliability=labelled.reliability_curve(points.of(method), labels, **given))

    def rejection(method: str, measure: str) -> RejectionCurve:
        uncertainty, correct = scored.of(method, measure), judged.of(method).correct
        return labelled.accuracy_rejection_curve(uncertainty, correct, points=POINTS)

    point = choose_point(judged, bins=bins, resampling=resampling)
    selective = ByMeasure.make(lambda measure: ByMethod.make(lambda method: rejection(method, measure)))
    sets = {rule: labelled.set_metrics(masks, labels) for rule, masks in scored.sets.items()}
    return PredictionQuality(point, Calibration.make(quality), selective, sets, judged.of(point.method))
