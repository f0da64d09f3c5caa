"""Act on uncertainty: what rejecting the most uncertain inputs buys, and where to set the alarm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.scores import check_same_samples, read_sample_scores
from credalens.checks.sets import read_truths
from credalens.evaluation.metrics.thin_curves import thin
from credalens.evaluation.results import Result


@dataclass(frozen=True, eq=False)
class RejectionCurve(Result):
    """What ``accuracy_rejection_curve`` returns: accuracy on the rest if more and more samples are rejected.

    The most uncertain samples are rejected first.

    :ivar rejected: share of samples rejected, 0 to (n - 1) / n.
    :ivar accuracy: accuracy on the rest.
    :ivar area: mean accuracy over keeping 1, 2, ..., n samples; exact, also when the curve is thinned.
    :ivar best_area: the area of a perfect ranking, every wrong sample before every right one.
    :ivar n: number of samples.
    """

    rejected: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    area: float
    best_area: float
    n: int


def accuracy_rejection_curve(uncertainty: Any, correct: Any, /, *, points: int | None = None) -> RejectionCurve:
    r"""Does the uncertainty know which predictions are wrong? O(n log n).

    .. math:: A(k) = \tfrac1k \, E\Big[\sum_{i \le k} \mathrm{correct}_{(i)}\Big], \quad
              \mathrm{area} = \tfrac1n \sum_{k=1}^n A(k)

    where (1), (2), ... are the samples from the least to the most uncertain and E averages over all orders of
    samples with the same uncertainty, so the result does not depend on the order of the data. An uncertainty
    that is the same everywhere gets a flat curve and an area equal to the accuracy. ``points`` thins the
    curve for plotting.

    >>> curve = accuracy_rejection_curve([0.1, 0.3, 0.3, 0.9], [True, True, False, False])
    >>> curve.rejected.tolist(), curve.accuracy.tolist()
    ([0.0, 0.25, 0.5, 0.75], [0.5, 0.6666666666666666, 0.75, 1.0])
    """
    uncertainty = read_sample_scores(uncertainty, "uncertainty")
    correct = read_truths(correct, "correct", "True where the prediction is right")
    check_same_samples(uncertainty, correct, "uncertainty and correct")
    n = len(uncertainty)
    kept = np.arange(n, 0, -1)
    rejected, accuracy = 1 - kept / n, _expected_right(uncertainty, correct)[::-1] / kept
    shown = thin(rejected, accuracy, points)
    best = np.minimum(kept, correct.sum()) / kept
    return RejectionCurve(rejected[shown], accuracy[shown], float(accuracy.mean()), float(best.mean()), n)


@dataclass(frozen=True)
class SelectiveMetrics(Result):
    """What ``selective_metrics`` returns: how well an uncertainty finds wrong predictions; lower is better.

    :ivar aurc: mean error rate among the inputs kept, over all shares kept.
    :ivar e_aurc: the same above that of a perfect ranking.
    :ivar augrc: mean share of all inputs that are kept and wrong, over all shares kept.
    :ivar n: number of samples.
    """

    aurc: float
    e_aurc: float
    augrc: float
    n: int


def selective_metrics(uncertainty: Any, correct: Any, /) -> SelectiveMetrics:
    r"""Areas under the risk-coverage curves of selective prediction, averaged over all orders of equal uncertainties.

    .. math:: AURC = \frac1n \sum_{k=1}^n \frac{E_k}{k}, \quad
              AUGRC = \int_0^1 \frac{E(c)}n dc = \frac1{n^2} \sum_{k=1}^n \frac{E_{k-1} + E_k}2

    with E_k the expected number of wrong predictions among the k least uncertain (Traub et al. 2024 for AUGRC, Geifman et al.
    2019 for the excess, E-AURC). For given predictions AUGRC orders uncertainties as the AUROC of finding the wrong ones does.

    >>> metrics = selective_metrics([0.1, 0.2, 0.3, 0.9], [True, True, True, False])
    >>> metrics.aurc, metrics.e_aurc, metrics.augrc
    (0.0625, 0.0, 0.03125)
    """
    curve = accuracy_rejection_curve(uncertainty, correct)
    kept = np.arange(curve.n, 0, -1)
    wrong = (1 - curve.accuracy) * kept
    augrc = float(wrong.sum() - wrong[0] / 2) / curve.n**2
    return SelectiveMetrics(1 - curve.area, curve.best_area - curve.area, augrc, curve.n)


def _expected_right(uncertainty: NDArray[np.float64], correct: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Expected right predictions among the k least uncertain, k = 1..n: linear inside a group of ties."""
    _, group, size = np.unique(uncertainty, return_inverse=True, return_counts=True)
    kept = np.append(0, np.cumsum(size))
    right = np.append(0, np.cumsum(np.bincount(group, weights=correct)))
    return np.interp(np.arange(1, len(uncertainty) + 1), kept, right)
