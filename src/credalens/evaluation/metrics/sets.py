"""How good are set-valued predictions, which may name several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from credalens.checks.labels import read_labels
from credalens.checks.sets import read_class_sets
from credalens.evaluation.results import Result


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
