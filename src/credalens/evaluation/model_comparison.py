"""Several models on the same inputs: is the new one better, where, and what did it cost?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.results import TOO_FEW, Comparison, Result
from credalens.evaluation.statistics.delong import compare_auroc
from credalens.evaluation.statistics.paired_mean import paired_mean

FEWEST = 20
"""Inputs below which accuracies are not compared."""


@dataclass(frozen=True)
class ModelDifference(Result):
    """One model against the first one, each with the score that is recommended for it; positive is better.

    :ivar accuracy: None without labels; :ivar auroc: OOD data set -> the difference.
    """

    model: str
    accuracy: Comparison | None
    auroc: dict[str, Comparison]

    def items(self) -> list[tuple[str, Comparison]]:
        """What is compared, with its name."""
        ours = [("accuracy", self.accuracy)] if self.accuracy else []
        return [*ours, *((f"AUROC, {name}", one) for name, one in self.auroc.items())]


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Evaluations of several models on the same inputs, the first of which the others are compared with."""

    evaluations: dict[str, Evaluation]
    differences: tuple[ModelDifference, ...]

    @property
    def baseline(self) -> str:
        """The first model."""
        return next(iter(self.evaluations))

    def as_dict(self) -> dict[str, Any]:
        """Plain values: the differences, and what each model is without what only a picture needs."""
        models = {name: evaluation.headline() for name, evaluation in self.evaluations.items()}
        return {"baseline": self.baseline, "differences": [one.as_dict() for one in self.differences], "models": models}

    def report(self, folder: str | os.PathLike[str], /, **options: Any) -> Path:
        """Write the comparison, and the report of every model in a folder of its own."""
        from credalens.report import write_comparison

        return write_comparison(self, folder, **options)


def compare_models(evaluations: Mapping[str, Evaluation], /) -> ModelComparison:
    """Compare two or more evaluations of the same inputs, name -> evaluation, with paired intervals."""
    named = {str(name): evaluation for name, evaluation in evaluations.items()}
    if len(named) < 2:
        raise ValueError(f"two models or more are compared, each under a name of its own; got {list(named)} (--model).")
    (baseline, first), *others = named.items()
    for name, other in others:
        _check_same_inputs(baseline, first, name, other)
    return ModelComparison(named, tuple(_difference(name, other, first) for name, other in others))


def _check_same_inputs(baseline: str, first: Evaluation, name: str, other: Evaluation) -> None:
    inputs = [{of: len(next(iter(scores.values()))) for of, scores in one.values.items()} for one in (first, other)]
    if inputs[0] != inputs[1] or (first.correct is None) != (other.correct is None):
        raise ValueError(
            f"models are compared on the same inputs, with or without labels: {baseline!r} has {inputs[0]}"
            f"{'' if first.correct is None else ' with labels'}, {name!r} has {inputs[1]}"
            f"{'' if other.correct is None else ' with labels'} (--model)."
        )


def _difference(name: str, model: Evaluation, first: Evaluation) -> ModelDifference:
    level = first.settings.level
    aurocs = {
        one.name: compare_auroc(*_scores(model, one.name), *_scores(first, one.name), level=level) for one in first.ood
    }
    if model.correct is None or first.correct is None:
        return ModelDifference(name, None, aurocs)
    return ModelDifference(name, _accuracies(model.correct, first.correct, level), aurocs)


def _scores(evaluation: Evaluation, ood_name: str) -> tuple[NDArray, NDArray]:
    score = evaluation.recommended.score
    return evaluation.values[evaluation.data.id.name][score], evaluation.values[ood_name][score]


def _accuracies(a: NDArray[np.bool_], b: NDArray[np.bool_], level: float) -> Comparison:
    r"""The paired difference :math:`\bar a - \bar b` and its normal interval, of what is right and wrong on the same inputs."""
    n = len(a)
    difference = paired_mean(a.astype(float) - b, level=level)
    if n < FEWEST:
        return Comparison("accuracy", a.mean(), b.mean(), difference.difference, -1.0, 1.0, level, 1.0, TOO_FEW, n, 0)
    means, (gain, low, high, p_value) = (float(a.mean()), float(b.mean())), difference
    return Comparison("accuracy", *means, gain, low, high, level, p_value, "paired normal", n, 0)
