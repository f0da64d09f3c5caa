"""How well a score tells out-of-distribution (OOD) inputs from in-distribution (ID) ones.

OOD is the positive class and a higher score means more OOD. Only the order of the scores matters, so an
entropy in bits, a log-density or a distance is taken as it is: nothing is squashed into [0, 1] or rescaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import read_sample_scores
from credalens.checks.options import check_count
from credalens.evaluation.results import Interval, Result
from credalens.evaluation.statistics.comparisons import auroc_interval
from credalens.evaluation.statistics.counts import METRICS, Coded, encode, flagged


def thin(x: NDArray[np.float64], y: NDArray[np.float64], points: int | None, /) -> NDArray[np.intp]:
    """Indices of at most ``points`` points, both ends among them, spread evenly along the curve."""
    if points is None or len(x) <= check_count(points, "points", least=2):
        return np.arange(len(x))
    length = np.append(0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y))))
    wanted = np.linspace(0.0, length[-1], points)[1:-1]
    return np.unique(np.concatenate([[0], np.searchsorted(length, wanted), [len(x) - 1]]))


@dataclass(frozen=True)
class OODMetrics(Result):
    """What ``ood_metrics`` returns: detection quality of one score; all values are fractions, not percentages.

    :ivar auroc: chance that an OOD sample scores above an ID sample, ties counted as one half.
    :ivar auprc: average precision with OOD positive ("AUPR-out", the paper's AUPRC).
    :ivar auprc_id: average precision with ID positive and negated scores ("AUPR-in").
    :ivar fpr95: share of ID falsely flagged when at least 95 % of OOD is flagged. Lower is better.
    :ivar fpr95_id: share of OOD let through when at least 95 % of ID is kept, the other meaning of "FPR95".
    :ivar auroc_interval: interval of the AUROC, if ``confidence`` was given.
    """

    auroc: float
    auprc: float
    auprc_id: float
    fpr95: float
    fpr95_id: float
    n_id: int
    n_ood: int
    auroc_interval: Interval | None = None

    @property
    def prevalence(self) -> float:
        """The share of OOD samples, which is the AUPRC of guessing."""
        return self.n_ood / (self.n_ood + self.n_id)


def ood_metrics(id_scores: Any, ood_scores: Any, *, confidence: float | None = None) -> OODMetrics:
    r"""AUROC, AUPRC and FPR95 of a score that should be higher on OOD inputs, in O(n log n).

    .. math::
        \mathrm{AUROC} = P(s_\mathrm{ood} > s_\mathrm{id}) + \tfrac12 P(s_\mathrm{ood} = s_\mathrm{id}), \quad
        \mathrm{AUPRC} = \sum_t (R_t - R_{t-1}) P_t

    with recall :math:`R_t` and precision :math:`P_t` of "flag when score >= t" and t running down the
    distinct scores. FPR95 is the share of ID samples with score >= t at the largest t that at least 95 % of
    the OOD samples reach; no interpolation, and samples that tie with t are all flagged. A score that is the
    same everywhere therefore gets an AUROC of 0.5 and an FPR95 of 1, whatever the order of the samples; AUPRC
    is then the share of OOD samples, so compare it only between data sets of the same proportion. Infinite
    scores are ranked; NaN is an error.

    >>> metrics = ood_metrics([0.1, 0.2, 0.3, 0.9], [0.8, 1.4])
    >>> metrics.auroc, metrics.fpr95
    (0.875, 0.25)
    """
    id_scores, ood_scores = read_sample_scores(id_scores, "id_scores"), read_sample_scores(ood_scores, "ood_scores")
    counts = encode(id_scores, ood_scores).counts()
    values = {name: metric(*counts) for name, metric in METRICS.items()}
    interval = None if confidence is None else auroc_interval(id_scores, ood_scores, level=confidence)
    return OODMetrics(**values, n_id=len(id_scores), n_ood=len(ood_scores), auroc_interval=interval)


@dataclass(frozen=True, eq=False)
class ROCCurve(Result):
    """What ``roc_curve`` returns: the curve from (0, 0) to (1, 1), threshold falling.

    ``area`` is the exact AUROC, also of a thinned curve. Point i is reached by flagging scores >= ``threshold[i]``; the first
    point flags nothing (threshold infinite).
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    threshold: NDArray[np.float64]
    area: float


def roc_curve(id_scores: Any, ood_scores: Any, /, *, points: int | None = None) -> ROCCurve:
    """The ROC curve with OOD positive, thinned to at most ``points`` points for plotting.

    Thinning keeps both ends and spreads the others evenly along the curve.

    >>> curve = roc_curve([0.1, 0.2], [0.2, 0.3])
    >>> curve.fpr.tolist(), curve.tpr.tolist(), curve.area
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0], 0.875)
    """
    coded = _encoded(id_scores, ood_scores)
    false_alarms, hits = (flagged(counts) for counts in coded.counts())
    fpr, tpr = (np.append(0.0, count / count[-1]) for count in (false_alarms, hits))
    kept = thin(fpr, tpr, points)
    return ROCCurve(fpr[kept], tpr[kept], _thresholds(coded)[kept], METRICS["auroc"](*coded.counts()))


@dataclass(frozen=True, eq=False)
class PRCurve(Result):
    """What ``pr_curve`` returns: points of the precision-recall curve, recall rising.

    ``area`` is the exact AUPRC, also of a thinned curve.

    The first point, recall 0 and precision 1, is a convention and carries no area. Draw it as steps that hold
    the precision to the left, ``ax.step(curve.recall, curve.precision, where="pre")``: then the area seen is
    the AUPRC.
    """

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    threshold: NDArray[np.float64]
    area: float


def pr_curve(id_scores: Any, ood_scores: Any, /, *, points: int | None = None) -> PRCurve:
    """The precision-recall curve with OOD positive, thinned to at most ``points`` points for plotting.

    >>> curve = pr_curve([0.1, 0.2], [0.2, 0.3])
    >>> curve.recall.tolist(), [round(p, 3) for p in curve.precision.tolist()]
    ([0.0, 0.5, 1.0, 1.0], [1.0, 1.0, 0.667, 0.5])
    """
    coded = _encoded(id_scores, ood_scores)
    false_alarms, hits = (flagged(counts) for counts in coded.counts())
    recall, precision = np.append(0.0, hits / hits[-1]), np.append(1.0, hits / (hits + false_alarms))
    kept = thin(recall, precision, points)
    return PRCurve(recall[kept], precision[kept], _thresholds(coded)[kept], METRICS["auprc"](*coded.counts()))


def _encoded(id_scores: Any, ood_scores: Any) -> Coded:
    return encode(read_sample_scores(id_scores, "id_scores"), read_sample_scores(ood_scores, "ood_scores"))


def _thresholds(coded: Coded) -> NDArray[np.float64]:
    return np.append(np.inf, coded.values[::-1])
