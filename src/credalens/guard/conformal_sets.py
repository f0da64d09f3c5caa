"""ConformalSets: sets of classes that hold the true one with a promised probability. And which score gives the smallest."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import array_kind_of, to_numpy
from credalens.checks.labels import read_labels, warn_shifted_labels
from credalens.checks.options import check_fraction, count_text
from credalens.guard.binomial import conformal_quantile, least_samples, most_hits
from credalens.guard.nonconformity import NONCONFORMITY, SetScore
from credalens.guard.rounding import difference
from credalens.guard.saved import SavedFormat, numbers
from credalens.guard.signature import PredictionKind
from credalens.prediction import CredalPrediction


def of_earlier_version(fields: dict[str, Any], /) -> dict[str, Any]:
    """The fields of sets of versions 1 and 2: thresholds go with the theta that they were found with."""
    return {**fields, "score": {**fields["score"], "of_bits": True}}


SAVED: Final = SavedFormat("conformal-sets", 3, {1: of_earlier_version, 2: of_earlier_version})


@dataclass(frozen=True, eq=False)
class ConformalSets:
    r"""Split-conformal sets: the classes whose nonconformity is at most a quantile of that of true classes.

    Use them to offer a few classes instead of one; :meth:`fit` makes them.

    For inputs exchangeable with those it was fitted on :math:`P(y \in C(x)) \ge 1 - \alpha`; with ``by_class`` also
    within every class y. The probability is over calibration data and new input together. Classes stay whose nonconformity
    is above the quantile by no more than rounding explains.

    :ivar thresholds: (classes,), the largest nonconformity that is kept; infinite if there were too few samples.
    :ivar n_samples: how many samples it was fitted on.
    """

    score: SetScore
    alpha: float
    by_class: bool
    allow_empty: bool
    fitted_on: PredictionKind
    n_samples: int
    thresholds: NDArray[np.float64]

    @classmethod
    def fit(
        cls,
        prediction: CredalPrediction,
        labels: Any,
        *,
        alpha: float = 0.1,
        method: str = "lac",
        by_class: bool = False,
        seed: int = 0,
        allow_empty: bool = False,
        penalty: float = 0.01,
        free_classes: int = 5,
    ) -> ConformalSets:
        """Learn from predictions on labelled data that the members were not trained on; labels are indices from 0.

        ``method`` names the nonconformity, how badly a class fits: of averaging "lac", "aps" and "raps"; of the credal set
        "intersection", "upper", "lower", "dominance", "intersection_cumulative", "upper_cumulative" and "lower_cumulative".
        ``by_class`` promises the coverage within every class and needs samples of each. ``seed`` is for "aps",
        "raps" and the cumulative ones, which are randomised, and ``penalty`` and ``free_classes`` for "raps". A set that would
        be empty gets the class that fits best, which only adds coverage; ``allow_empty`` leaves it empty.

        >>> import numpy as np
        >>> from credalens import wrap
        >>> p = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], (5, 100))
        >>> prediction, labels = wrap(p), p[0].argmax(axis=-1)
        >>> sets = ConformalSets.fit(prediction, labels, alpha=0.1)
        >>> sets.predict_set(prediction[:2]).tolist()
        [[False, True, True], [False, True, True]]
        """
        kind = PredictionKind.of(prediction)
        truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape)).ravel()
        warn_shifted_labels(truth, to_numpy(prediction.predict())[0].ravel(), stacklevel=3)
        rate, score = check_fraction(alpha, "alpha"), SetScore(method, seed, penalty, free_classes)
        own = np.take_along_axis(score.of(prediction), truth[:, None], axis=1)[:, 0]
        groups = [own[truth == k] for k in range(kind.classes)] if by_class else [own]
        _warn_too_few([len(group) for group in groups], rate, by_class)
        limits = np.array([conformal_quantile(group, rate) for group in groups])
        thresholds = np.broadcast_to(limits, kind.classes).copy()
        return cls(score, rate, bool(by_class), bool(allow_empty), kind, len(truth), thresholds)

    def predict_set(self, prediction: CredalPrediction, /) -> Any:
        """The sets as masks (*batch, classes)."""
        self.fitted_on.check(PredictionKind.of(prediction))
        scores = self.score.of(prediction)
        lowest = self.score.lowest(scores, difference(self.fitted_on.rounding, prediction._rounding))
        masks = lowest <= self.thresholds
        if not self.allow_empty:
            best = (lowest <= scores.min(axis=1, keepdims=True)).argmax(axis=1)  # the first where rounding makes a tie
            masks[np.arange(len(masks)), best] |= ~masks.any(axis=1)
        return array_kind_of(prediction.lower).restore(masks.reshape(prediction.lower.shape))

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write as JSON, whole or not at all."""
        SAVED.write(path, self.saved_fields())

    def saved_fields(self) -> dict[str, Any]:
        """The fields that are saved, also within a guard."""
        return {**vars(self), "score": asdict(self.score), "fitted_on": asdict(self.fitted_on)}

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> ConformalSets:
        """Read what :meth:`save` wrote; sets come back bit for bit."""
        return SAVED.read(path, cls.restored)

    @classmethod
    def restored(cls, fields: dict[str, Any], /) -> ConformalSets:
        """The sets from what :meth:`saved_fields` gave, as read from a file."""
        score, kind = SetScore(**fields["score"]), PredictionKind(**fields["fitted_on"])
        check_fraction(fields["alpha"], "alpha")
        return cls(**{**fields, "score": score, "fitted_on": kind, "thresholds": numbers(fields["thresholds"])})


def _warn_too_few(sizes: list[int], alpha: float, by_class: bool) -> None:
    least = least_samples(alpha)
    if min(sizes) >= least:
        return
    scarce = ", ".join(str(k) for k, n in enumerate(sizes) if n < least)
    given = f"got {count_text(sizes[0], 'sample')},"
    who, kept = (f"classes {scarce} have", "they are") if by_class else (given, "every class is")
    warnings.warn(
        f"{who} fewer than the {least} that a coverage of {1 - alpha:g} needs: {kept} in every set.", stacklevel=3
    )


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
