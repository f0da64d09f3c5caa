"""Do predicted probabilities match what happens: accuracy, ECE, NLL, Brier score, reliability curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import read_labels, read_probabilities
from credalens.checks.options import check_bins, check_fraction
from credalens.evaluation.results import Result

FIRM = 5
"""With fewer inputs than this the accuracy of a bin says little."""

# The spacing of float64 at 1, as in scikit-learn's log_loss: giving the truth probability 0 costs 36.04 nats.
NLL_FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class CalibrationMetrics(Result):
    """What ``calibration_metrics`` returns; accuracy and ECE are fractions, NLL is in nats.

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
    """What ``reliability_curve`` returns: mean confidence, accuracy and number of samples of each bin [edge_b, edge_{b+1}).

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
    probs, labels = _probs_and_labels(probs, labels)
    floor = check_fraction(floor, "floor")
    of_truth = np.take_along_axis(probs, labels[:, None], axis=-1)[:, 0]
    correct = _named(probs, predicted) == labels
    curve = _reliability(probs, correct, bins)
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
    probs, labels = _probs_and_labels(probs, labels)
    return _reliability(probs, _named(probs, predicted) == labels, bins)


def confidence_bins(confidence: NDArray[np.float64], bins: int, /) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The edges of the bins, and the bin of each confidence."""
    # k / bins is correctly rounded, so 0.29 lies in bin 29 of 100; the product 0.29 * 100 falls short of it.
    edges = np.arange(bins + 1) / bins
    return edges, np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, bins - 1)


def _named(probs: NDArray[np.float64], predicted: Any) -> NDArray[np.int64]:
    return probs.argmax(axis=-1) if predicted is None else read_labels(predicted, "predicted", probs).ravel()


def _reliability(probs: NDArray[np.float64], correct: NDArray[np.bool_], bins: int) -> ReliabilityCurve:
    confidence = probs.max(axis=-1)
    edges, within = confidence_bins(confidence, bins := check_bins(bins))
    count, sum_confidence, sum_correct = (
        np.bincount(within, weights, minlength=bins) for weights in (None, confidence, correct)
    )
    filled = np.where(count > 0, count, np.nan)
    ece = float(np.abs(sum_correct - sum_confidence).sum() / len(correct))
    return ReliabilityCurve(edges, sum_confidence / filled, sum_correct / filled, count, ece)


def joined_bins(count: NDArray, /) -> NDArray[np.bool_]:
    """The bins that a reliability diagram joins: those with enough inputs, or all filled ones where none has enough."""
    firm = count >= FIRM
    return firm if firm.any() else count > 0


def _probs_and_labels(probs: Any, labels: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rows = read_probabilities(probs, "probs")
    indices = read_labels(labels, "labels", rows)
    return rows.reshape(-1, rows.shape[-1]), indices.ravel()
