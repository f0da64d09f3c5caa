"""Several models on the same inputs: which one is better, and where."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import escaped_names
from credalens.evaluation.metrics.calibration import NLL_FLOOR
from credalens.evaluation.outcome import Evaluation, Settings
from credalens.evaluation.prediction_quality import JudgedRows, PointQuality, paired_accuracy, paired_ece, paired_nll
from credalens.evaluation.results import TOO_FEW, Comparison, Result
from credalens.evaluation.statistics.bootstrap import Resampling
from credalens.evaluation.statistics.comparisons import PairedMean, compare_auroc

FEWEST = 20
"""Inputs below which point predictions are not compared."""


@dataclass(frozen=True)
class ModelDifference(Result):
    """One model minus the first one, each with the point prediction and the score that are recommended for it.

    :ivar accuracy: None without labels, as are ``ece`` and ``nll``, of which less is better.
    :ivar auroc: OOD data set -> the difference.
    """

    model: str
    accuracy: Comparison | None
    ece: Comparison | None
    nll: Comparison | None
    auroc: dict[str, Comparison]

    def items(self) -> list[tuple[str, Comparison]]:
        """What is compared, with its name."""
        labelled = {"accuracy": self.accuracy, "ECE": self.ece, "NLL": self.nll}
        ours = [(name, one) for name, one in labelled.items() if one]
        return [*ours, *((f"AUROC, {name}", one) for name, one in self.auroc.items())]


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """What ``compare_models`` returns: evaluations on the same inputs, the first of which the others are compared with."""

    evaluations: dict[str, Evaluation]
    differences: tuple[ModelDifference, ...]

    @property
    def baseline(self) -> str:
        """The first model."""
        return next(iter(self.evaluations))

    def as_dict(self) -> dict[str, Any]:
        """Plain values: the differences, and the evaluation of each model without what only a picture needs."""
        models = {name: evaluation.headline() for name, evaluation in self.evaluations.items()}
        return {"baseline": self.baseline, "differences": [one.as_dict() for one in self.differences], "models": models}

    def report(self, folder: str | os.PathLike[str], /, **options: Any) -> Path:
        """Write the comparison, and the report of every model in a folder of its own."""
        from credalens.report import write_comparison

        return write_comparison(self, folder, **options)


def compare_models(evaluations: Mapping[str, Evaluation], /) -> ModelComparison:
    """Compare two or more evaluations of the same inputs, name -> evaluation, with paired intervals.

    >>> from credalens import evaluate
    >>> rng, labels = np.random.default_rng(0), np.zeros(60, int)
    >>> weak, strong = (evaluate(rng.dirichlet([k, 2, 2], size=(5, 60)), labels=labels) for k in (3, 60))
    >>> difference = compare_models({"weak": weak, "strong": strong}).differences[0]
    >>> difference.model, difference.accuracy.low > 0
    ('strong', True)
    """
    named = escaped_names(evaluations, "a model")
    if len(named) < 2:
        raise ValueError(f"compare two models or more, each under its own name; got {list(named)} (--model).")
    (baseline, first), *others = named.items()
    for name, other in others:
        _check_same_inputs(baseline, first, name, other)
    return ModelComparison(named, tuple(_difference(name, other, first) for name, other in others))


def _check_same_inputs(baseline: str, first: Evaluation, name: str, other: Evaluation) -> None:
    inputs = [{of: len(next(iter(scores.values()))) for of, scores in one.values.items()} for one in (first, other)]
    if inputs[0] != inputs[1] or (first.judged is None) != (other.judged is None):
        raise ValueError(
            f"models are compared on the same inputs, with or without labels: {baseline!r} has {inputs[0]}"
            f"{'' if first.judged is None else ' with labels'}, {name!r} has {inputs[1]}"
            f"{'' if other.judged is None else ' with labels'} (--model)."
        )
    if first.settings.bins != other.settings.bins:
        raise ValueError(f"ECEs of {first.settings.bins} and of {other.settings.bins} bins are not compared (--bins).")
    if first.judged and other.judged:
        _check_same_labels(baseline, first.judged.labels, name, other.judged.labels)


def _check_same_labels(baseline: str, first: NDArray, name: str, other: NDArray) -> None:
    differing = np.flatnonzero(first != other)
    if len(differing):
        row = differing[0]
        raise ValueError(
            f"models are compared on the same inputs, but {len(differing)} of {len(first)} labels differ: the first in row "
            f"{row} (from 0), {first[row]} for {baseline!r} and {other[row]} for {name!r} (--model). Are the rows in the same "
            "order?"
        )


def _difference(name: str, model: Evaluation, first: Evaluation) -> ModelDifference:
    level = first.settings.level
    aurocs = {
        one.name: compare_auroc(*_scores(model, one.name), *_scores(first, one.name), level=level) for one in first.ood
    }
    if model.judged is None or first.judged is None:
        return ModelDifference(name, None, None, None, aurocs)
    points = recommended_point(model), recommended_point(first)
    labelled = _labelled(points, (model.judged, first.judged), first.settings)
    return ModelDifference(name, **labelled, auroc=aurocs)


def _scores(evaluation: Evaluation, ood_name: str) -> tuple[NDArray, NDArray]:
    score = evaluation.recommended.score
    return evaluation.values[evaluation.data.id.name][score], evaluation.values[ood_name][score]


def recommended_point(evaluation: Evaluation, /) -> PointQuality:
    """The quality of the point prediction that is recommended for a model with labels."""
    if evaluation.calibration is None or evaluation.point is None:
        raise ValueError("the quality of point predictions needs labels (--labels).")
    averaged = evaluation.point.prediction == "mean"
    return evaluation.calibration.averaged if averaged else evaluation.calibration.intersection


def _labelled(
    points: tuple[PointQuality, PointQuality], rows: tuple[JudgedRows, JudgedRows], settings: Settings
) -> dict[str, Comparison]:
    """Accuracy, ECE and NLL of two point predictions of the same inputs."""
    level, n = settings.level, len(rows[0].labels)
    resampling = Resampling(level, settings.replicates, settings.seed)

    def compared(metric: str, method: str, largest: float, paired: PairedMean) -> Comparison:
        a, b = (getattr(point, metric) for point in points)
        if n < FEWEST:
            return Comparison(metric, a, b, a - b, -largest, largest, level, 1.0, TOO_FEW, n, 0)
        low, high, p_value = paired[1:]
        return Comparison(metric, a, b, a - b, low, high, level, p_value, method, n, 0)

    ece = paired_ece(*rows, bins=settings.bins, resampling=resampling)
    return {
        "accuracy": compared("accuracy", "exact McNemar", 1.0, paired_accuracy(*rows, level=level)),
        "ece": compared("ece", "bootstrap", 1.0, ece),
        "nll": compared("nll", "paired normal", -math.log(NLL_FLOOR), paired_nll(*rows, level=level)),
    }
