"""What rejecting the most uncertain inputs buys, and how good set-valued predictions are, which may name several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import check_same_samples, read_class_sets, read_labels, read_sample_scores, read_truths
from credalens.evaluation.metrics.ood import thin
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


@dataclass(frozen=True)
class SetMetrics(Result):
    """What ``set_metrics`` returns: quality of set-valued predictions.

    :ivar coverage: share of samples whose set holds the true class.
    :ivar mean_size: mean number of classes in a set.
    :ivar determinacy: share of sets with exactly one class.
    :ivar single_accuracy: accuracy on those; NaN if there are none.
    :ivar u65: utility that values a correct set of two at 0.65.
    :ivar u80: the same at 0.80.
    """

    coverage: float
    mean_size: float
    determinacy: float
    single_accuracy: float
    u65: float
    u80: float
    n: int


def set_metrics(masks: Any, labels: Any, /) -> SetMetrics:
    r"""Coverage, size, determinacy and discounted utilities of sets given as masks (*samples, classes).

    .. math:: u_{65}(n) = 1.6/n - 0.6/n^2, \quad u_{80}(n) = 2.2/n - 1.2/n^2

    for a set of n classes that holds the label, 0 for one that does not; both give 1 to a correct single
    class, and u80 rewards caution more (Zaffalon, Corani and Mauá 2012).

    >>> metrics = set_metrics([[True, False, False], [True, True, False], [False, True, True]], [0, 1, 0])
    >>> round(metrics.coverage, 3), round(metrics.u65, 3), round(metrics.u80, 3)
    (0.667, 0.55, 0.6)
    """
    masks = read_class_sets(masks, "masks")
    labels = read_labels(labels, "labels", masks)
    size = masks.sum(axis=-1)
    covered = np.take_along_axis(masks, labels[..., None], axis=-1)[..., 0]
    single = size == 1
    return SetMetrics(
        coverage=float(covered.mean()),
        mean_size=float(size.mean()),
        determinacy=float(single.mean()),
        single_accuracy=float(covered[single].mean()) if single.any() else float("nan"),
        u65=float((covered * (1.6 / size - 0.6 / size**2)).mean()),
        u80=float((covered * (2.2 / size - 1.2 / size**2)).mean()),
        n=int(size.size),
    )
