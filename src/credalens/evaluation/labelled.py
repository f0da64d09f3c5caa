"""Metrics of predictions with known labels: are they right, calibrated, better with doubtful inputs rejected, or as sets?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import check_same_samples, read_class_sets, read_labels, read_sample_scores, read_truths
from credalens.checks.options import check_bins, check_fraction
from credalens.core.members import read_probabilities
from credalens.evaluation.ood import thin
from credalens.evaluation.results import Result

# The spacing of float64 at 1, as in scikit-learn's log_loss: giving the truth probability 0 costs 36.04 nats.
NLL_FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CalibrationMetrics(Result):
    """Result of ``calibration_metrics``; accuracy and ECE are fractions, NLL is in nats.

    :ivar floor: probabilities of the true class below it were raised to it in the NLL.
    :ivar n_floored: how many were; if it is not 0, the NLL depends on the floor.
    """

    accuracy: float
    ece: float
    nll: float
    brier: float
    n: int
    bins: int
    floor: float
    n_floored: int


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Result):
    """Result of ``reliability_curve``: mean confidence, accuracy and number of samples of each bin [edge_b, edge_{b+1}).

    Confidence and accuracy are NaN in empty bins.
    """

    edges: NDArray[np.float64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    count: NDArray[np.int64]
    ece: float


def calibration_metrics(
    probs: Any, labels: Any, *, bins: int = 15, floor: float = NLL_FLOOR, predicted: Any = None
) -> CalibrationMetrics:
    r"""Accuracy, expected calibration error, negative log-likelihood and Brier score (paper, Eq. ECE).

    .. math::
        \mathrm{ECE} = \sum_b \tfrac{|B_b|}{n} |\mathrm{acc}(B_b) - \mathrm{conf}(B_b)|, \quad
        \mathrm{NLL} = -\tfrac1n \sum_i \ln \max(p_{i y_i}, \mathrm{floor}), \quad
        \mathrm{Brier} = \tfrac1n \sum_i \sum_k (p_{ik} - [k = y_i])^2

    ``probs`` is (*samples, classes) and ``labels`` (*samples) holds class indices. The predicted class is the
    first of the most probable ones and its probability the confidence. Bins have equal width and are
    half-open, [a, b), except the last, which includes 1. The Brier score sums over classes and runs from 0 to
    2; scikit-learn halves it for two classes. Probabilities are scored as given, not renormalised. ``predicted`` are the
    classes that the predictions name, where they break ties in another way.

    >>> metrics = calibration_metrics([[0.9, 0.1], [0.6, 0.4]], [0, 1])
    >>> metrics.accuracy, round(metrics.ece, 3), round(metrics.nll, 3), round(metrics.brier, 3)
    (0.5, 0.35, 0.511, 0.37)
    """
    probs, labels, correct = _judged(probs, labels, predicted)
    floor = check_fraction(floor, "floor")
    curve = _reliability(probs, correct, bins)
    of_truth = np.take_along_axis(probs, labels[:, None], axis=-1)[:, 0]
    errors = probs.copy()
    errors[np.arange(len(labels)), labels] -= 1
    return CalibrationMetrics(
        accuracy=float(correct.mean()),
        ece=curve.ece,
        nll=float(-np.log(np.maximum(of_truth, floor)).mean()),
        brier=float(np.vdot(errors, errors) / len(labels)),
        n=len(labels),
        bins=len(curve.count),
        floor=floor,
        n_floored=int((of_truth < floor).sum()),
    )


def reliability_curve(probs: Any, labels: Any, /, *, bins: int = 15, predicted: Any = None) -> ReliabilityCurve:
    """Confidence against accuracy, bin by bin; bins and ECE as in :func:`calibration_metrics`.

    >>> curve = reliability_curve([[0.9, 0.1], [0.6, 0.4]], [0, 1], bins=2)
    >>> curve.confidence.tolist(), curve.accuracy.tolist(), curve.count.tolist()
    ([nan, 0.75], [nan, 0.5], [0, 2])
    """
    probs, _, correct = _judged(probs, labels, predicted)
    return _reliability(probs, correct, bins)


def _judged(
    probs: Any, labels: Any, predicted: Any
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Probabilities (rows, classes), labels, and whether the class named is the right one."""
    rows = read_probabilities(probs, "probs")
    truth = read_labels(labels, "labels", rows)
    named = rows.argmax(axis=-1) if predicted is None else read_labels(predicted, "predicted", rows)
    return rows.reshape(-1, rows.shape[-1]), truth.ravel(), (named == truth).ravel()


def confidence_bins(confidence: NDArray[np.float64], bins: int, /) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The edges of the bins, and the bin of each confidence."""
    # k / bins is correctly rounded, so 0.29 lies in bin 29 of 100; the product 0.29 * 100 falls short of it.
    edges = np.arange(bins + 1) / bins
    return edges, np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, bins - 1)


def _reliability(probs: NDArray[np.float64], correct: NDArray[np.bool_], bins: int) -> ReliabilityCurve:
    confidence = probs.max(axis=-1)
    edges, within = confidence_bins(confidence, bins := check_bins(bins))
    count, sum_confidence, sum_correct = (
        np.bincount(within, weights, minlength=bins) for weights in (None, confidence, correct)
    )
    filled = np.where(count > 0, count, np.nan)
    ece = float(np.abs(sum_correct - sum_confidence).sum() / len(correct))
    return ReliabilityCurve(edges, sum_confidence / filled, sum_correct / filled, count, ece)


@dataclass(frozen=True, eq=False)
class RejectionCurve(Result):
    """Result of ``accuracy_rejection_curve``: accuracy on the rest if more and more samples are rejected.

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
    # expected right predictions among the k least uncertain: linear inside a group of ties
    _, group, size = np.unique(uncertainty, return_inverse=True, return_counts=True)
    right = np.append(0, np.cumsum(np.bincount(group, weights=correct)))
    kept = np.arange(n, 0, -1)
    rejected, accuracy = 1 - kept / n, np.interp(kept, np.append(0, np.cumsum(size)), right) / kept
    drawn = thin(rejected, accuracy, points)
    best = np.minimum(kept, correct.sum()) / kept
    return RejectionCurve(rejected[drawn], accuracy[drawn], float(accuracy.mean()), float(best.mean()), n)


@dataclass(frozen=True)
class SelectiveMetrics(Result):
    """Result of ``selective_metrics``: how well an uncertainty finds wrong predictions; lower is better.

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


@dataclass(frozen=True)
class SetMetrics(Result):
    """Result of ``set_metrics``: quality of set-valued predictions.

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
