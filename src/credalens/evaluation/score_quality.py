"""How good every score of the catalogue is: at finding OOD inputs, and at finding wrong predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from credalens.core.scores import SCORES
from credalens.evaluation.metrics.ood import OODMetrics, ood_metrics
from credalens.evaluation.metrics.selective import SelectiveMetrics, selective_metrics
from credalens.evaluation.results import Result
from credalens.evaluation.scored_set import ScoredSet


@dataclass(frozen=True, eq=False)
class ScoreQuality(Result):
    """One score of the catalogue.

    :ivar label: what tables call it.
    :ivar averaging: whether it belongs to averaged predictions.
    :ivar ood: OOD data set -> how well the score finds it, with the interval of the AUROC.
    :ivar selective: how well it finds wrong predictions of the recommended kind; None without labels.
    """

    name: str
    label: str
    averaging: bool
    ood: dict[str, OODMetrics]
    selective: SelectiveMetrics | None


def score_qualities(
    id_set: ScoredSet, ood_sets: list[ScoredSet], correct: NDArray[np.bool_] | None, /, *, level: float
) -> tuple[ScoreQuality, ...]:
    """All scores, in the order of the catalogue."""
    return tuple(
        ScoreQuality(
            name,
            SCORES[name].label,
            SCORES[name].averaging,
            {one.name: ood_metrics(id_scores, one.scores[name], confidence=level) for one in ood_sets},
            None if correct is None else selective_metrics(id_scores, correct),
        )
        for name, id_scores in id_set.scores.items()
    )


def scores_of_mistakes(
    id_set: ScoredSet, correct: NDArray[np.bool_], /
) -> tuple[dict[str, NDArray], dict[str, dict[str, NDArray]]]:
    """The scores of right predictions, and those of wrong ones as the data set to find; none where there are too few."""
    right = {name: values[correct] for name, values in id_set.scores.items()}
    wrong = {name: values[~correct] for name, values in id_set.scores.items()}
    return right, ({"wrong predictions": wrong} if 2 <= correct.sum() <= len(correct) - 2 else {})
