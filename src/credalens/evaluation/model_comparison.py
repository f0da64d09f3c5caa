"""Several models on the same inputs: which one is better, and where."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import escaped_names
from credalens.evaluation.evaluate import Evaluation
from credalens.evaluation.intervals import Resampling
from credalens.evaluation.labelled import NLL_FLOOR
from credalens.evaluation.ood import compare_auroc
from credalens.evaluation.prediction_quality import PointQuality, compare_points
from credalens.evaluation.results import TOO_FEW, Comparison, Result

FEWEST = 20
"""Inputs below which point predictions are not compared."""
LARGEST: Final = {"accuracy": 1.0, "ece": 1.0, "nll": -math.log(NLL_FLOOR)}
"""The largest difference that is possible."""


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
        """Every comparison with its name."""
        labelled = {"accuracy": self.accuracy, "ECE": self.ece, "NLL": self.nll}
        ours = [(name, one) for name, one in labelled.items() if one]
        return [*ours, *((f"AUROC, {name}", one) for name, one in self.auroc.items())]


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Result of ``compare_models``: evaluations on the same inputs, the first of which the others are compared with."""

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
    (baseline, first), *rest = named.items()
    for name, other in rest:
        _check_same_inputs(baseline, first, name, other)
    return ModelComparison(named, tuple(_difference(name, other, first) for name, other in rest))


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
        labels, other_labels = first.judged.labels, other.judged.labels
        differing = np.flatnonzero(labels != other_labels)
        if len(differing):
            row = differing[0]
            raise ValueError(
                f"models are compared on the same inputs, but {len(differing)} of {len(labels)} labels differ: the first in "
                f"row {row} (from 0), {labels[row]} for {baseline!r} and {other_labels[row]} for {name!r} (--model). Are the "
                "rows in the same order?"
            )


def _difference(name: str, model: Evaluation, first: Evaluation) -> ModelDifference:
    settings = first.settings

    def scores(evaluation: Evaluation, of: str) -> tuple[NDArray, NDArray]:
        values, score = evaluation.values, evaluation.recommended.score
        return values[evaluation.data.id.name][score], values[of][score]

    aurocs = {
        one.name: compare_auroc(*scores(model, one.name), *scores(first, one.name), level=settings.level)
        for one in first.ood
    }
    if model.judged is None or first.judged is None:
        return ModelDifference(name, None, None, None, aurocs)
    resampling = Resampling(settings.level, settings.replicates, settings.seed)
    labelled = compare_points(model.judged, first.judged, bins=settings.bins, resampling=resampling)
    if len(model.judged.labels) < FEWEST:
        labelled = {
            metric: replace(one, low=-LARGEST[metric], high=LARGEST[metric], p_value=1.0, method=TOO_FEW)
            for metric, one in labelled.items()
        }
    return ModelDifference(name, **labelled, auroc=aurocs)


def recommended_point(evaluation: Evaluation, /) -> PointQuality:
    """The quality of the point prediction that is recommended for a model with labels."""
    if evaluation.calibration is None or evaluation.point is None:
        raise ValueError("the quality of point predictions needs labels (--labels).")
    return evaluation.calibration.of(evaluation.point.method)
