"""Which set score gives the smallest sets at equal coverage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.labels import read_labels
from credalens.guard.binomial import most_hits
from credalens.guard.conformal_sets import ConformalSets
from credalens.guard.nonconformity import NONCONFORMITY
from credalens.guard.signature import PredictionKind
from credalens.prediction import CredalPrediction


@dataclass(frozen=True)
class SetQuality:
    """Sizes and coverage of the sets of one method on test inputs, as ``compare_sets`` returns them.

    :ivar coverage: share of sets with the true class.
    :ivar mean_size: classes in a set, on average.
    :ivar single: share of sets with one class.
    :ivar worst_class_coverage: the coverage of the class that is covered least.
    :ivar equal_size: mean size at a coverage of exactly 1 - alpha on the test inputs: what methods are compared by.
    """

    method: str
    alpha: float
    coverage: float
    mean_size: float
    single: float
    worst_class_coverage: float
    equal_size: float


def compare_sets(
    calibration: CredalPrediction,
    labels: Any,
    test: CredalPrediction,
    test_labels: Any,
    *,
    alphas: Iterable[float] = (0.1, 0.05, 0.01),
    methods: Iterable[str] = tuple(NONCONFORMITY),
    by_class: bool = False,
    seed: int = 0,
) -> tuple[SetQuality, ...]:
    """Fit every method of ``ConformalSets`` on calibration inputs, and measure its sets on test inputs, by alpha and method.

    Use it to choose ``method``: the one with the smallest ``equal_size``.

    Methods reach slightly different coverage on a finite test set. For ``equal_size`` each threshold is chosen on the test
    inputs such that the coverage is the same for all.
    """
    PredictionKind.of(calibration).check(PredictionKind.of(test))
    truth = read_labels(test_labels, "test_labels", np.broadcast_to(0, test.lower.shape)).ravel()
    return tuple(
        _quality(
            ConformalSets.fit(calibration, labels, alpha=alpha, method=method, by_class=by_class, seed=seed),
            test,
            truth,
        )
        for alpha in alphas
        for method in methods
    )


def sizes_at_coverage(scores: NDArray[np.float64], truth: NDArray[np.int64], alpha: float, /) -> NDArray[np.int64]:
    """How many classes each set has under the smallest threshold that covers a share 1 - alpha of these inputs."""
    own = np.sort(np.take_along_axis(scores, truth[:, None], axis=1)[:, 0])
    threshold = own[len(own) - 1 - most_hits(alpha, len(own))]
    return (scores <= threshold).sum(axis=1)


def _quality(sets: ConformalSets, test: CredalPrediction, truth: NDArray) -> SetQuality:
    masks = to_numpy(sets.predict_set(test))[0].reshape(len(truth), -1)
    covered, sizes = masks[np.arange(len(truth)), truth], masks.sum(axis=1)
    return SetQuality(
        method=sets.score.method,
        alpha=sets.alpha,
        coverage=float(covered.mean()),
        mean_size=float(sizes.mean()),
        single=float((sizes == 1).mean()),
        worst_class_coverage=min(float(covered[truth == k].mean()) for k in np.unique(truth)),
        equal_size=float(sizes_at_coverage(sets.score.of(test), truth, sets.alpha).mean()),
    )
