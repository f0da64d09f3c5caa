r"""ConformalSets: sets of classes that hold the true one with a promised probability. And which score gives the smallest.

A set score says how badly each class fits an input; a set keeps the classes that fit well enough. l, u are the bounds, p* the
intersection probability, \bar p the mean. Cumulative scores sum over the classes from the likeliest down to k, the set
:math:`A_k`, and leave out a random part :math:`\theta` in (0, 1] of what k adds: the coverage is exact.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ROUNDINGS, array_kind_of, to_numpy
from credalens.checks.arrays import read_labels, warn_shifted_labels
from credalens.checks.options import check_choice, check_count, check_fraction, check_real, count_text
from credalens.guard.binomial import conformal_quantile, least_samples, most_hits
from credalens.guard.signature import Signature, difference
from credalens.prediction import CredalPrediction
from credalens.storage.saved import Saved, SavedFormat, numbers

DIGITS: Final = 2.0**-20
"""Relative to a probability, or to one for sums and differences of some: ten times the rounding of float32."""
LAST_DIGIT: Final = 2.0**-50
GRIDS: Final = 4
CELL: Final = 2.0**-4  # of a factor of two
LEAST: Final = 2.0**-30  # probabilities below it are nearly zero for theta


@dataclass(frozen=True, eq=False)
class Rows:
    """The inputs of set scores, (rows, classes) in float64; ``theta`` is a number in (0, 1] for each row."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    probability: NDArray[np.float64]
    mean: NDArray[np.float64]
    theta: NDArray[np.float64]
    penalty: float
    free_classes: int


@dataclass(frozen=True)
class Nonconformity:
    """One set score: its label in tables, its formula in LaTeX, and whether it needs more than the mean."""

    name: str
    label: str
    formula: str
    compute: Callable[[Rows], NDArray[np.float64]]
    credal: bool = True
    of_one: bool = False  # one minus a probability of the class itself, whose rounding is relative to that


def hashed_uniforms(rows: NDArray[np.float64], seed: int, /, *, of_bits: bool = False) -> NDArray[np.float64]:
    """A number in (0, 1] for each distribution that looks random and depends on it and the seed only, not on its last digits.

    So an input has the same in float32 and float64, which matters where many inputs share one distribution. Half precision,
    which changes more than last digits, gives some inputs another. ``of_bits`` lets it depend on every bit.

    It depends on the cells of a few grids in which the distribution lies. Each grid is along a random mixture of the logarithms
    of the probabilities, and begins at a random place: votes, shares of a few members and zeros, which many inputs have, lie on
    a border only by chance.
    """
    rng, classes = np.random.default_rng([seed, GRIDS]), rows.shape[1]
    mixtures = rng.normal(size=(classes, GRIDS)) / (CELL * math.sqrt(classes))
    cells = np.floor(np.log2(rows + LEAST) @ mixtures + rng.random(GRIDS)).astype(np.int64)
    words = (rows + 0.0 if of_bits else cells).view(np.uint64)  # one zero, not two
    keys = np.random.default_rng(seed).integers(2**64, size=words.shape[1] + 1, dtype=np.uint64)
    mixed = keys[0] + ((words ^ (words >> np.uint64(32))) * (keys[1:] | np.uint64(1))).sum(axis=1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the last steps of SplitMix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return 1 - (mixed >> np.uint64(11)) * 2.0**-53


def _ranked(p: NDArray, score: Callable[[NDArray], NDArray]) -> NDArray[np.float64]:
    """A score of classes in the order of falling ``p``, given that order; of those equal but for rounding the first leads."""
    order = np.argsort(-p, axis=1, kind="stable")
    ordered = np.take_along_axis(p, order, axis=1)
    apart = ordered[:, :-1] - ordered[:, 1:] > DIGITS * ordered[:, :-1]
    tied = ~apart.all(axis=1)
    places = np.zeros_like(order[tied])
    np.put_along_axis(places, order[tied][:, 1:], np.cumsum(apart[tied], axis=1), axis=1)
    order[tied] = np.argsort(places, axis=1, kind="stable")
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, score(order), axis=1)
    return scores


def _sums(x: NDArray, order: NDArray) -> NDArray:
    return np.cumsum(np.take_along_axis(x, order, axis=1), axis=1)


def _less_part(sums: NDArray, theta: NDArray) -> NDArray:
    """Sums to each class, without the part theta of its own contribution."""
    return sums - theta[:, None] * np.diff(sums, axis=1, prepend=0.0)


def _cumulative(p: NDArray, theta: NDArray, extra: NDArray | float = 0.0) -> NDArray[np.float64]:
    return _ranked(p, lambda order: _less_part(_sums(p, order), theta) + extra)


def _cumulative_bound(rows: Rows, own: NDArray, other: NDArray, tighter: Callable[..., NDArray]) -> NDArray[np.float64]:
    r"""The bound of :math:`A_k`: the sum of its own bounds, or what the ``other`` bounds of all further classes leave."""

    def score(order: NDArray) -> NDArray:
        rest = other.sum(axis=1, keepdims=True) - _sums(other, order)
        return _less_part(tighter(_sums(own, order), 1 - rest), rows.theta)

    return _ranked(rows.probability, score)


_CATALOGUE: Final = (
    Nonconformity("lac", "LAC", r"1 - \bar p_k", lambda x: 1 - x.mean, credal=False, of_one=True),
    Nonconformity("aps", "APS", r"\bar p(A_k) - \theta \bar p_k", lambda x: _cumulative(x.mean, x.theta), credal=False),
    Nonconformity(
        "raps", "RAPS", r"\bar p(A_k) - \theta \bar p_k + \lambda (|A_k| - k_0)^+",
        lambda x: _cumulative(x.mean, x.theta, x.penalty * np.maximum(0, np.arange(1, x.mean.shape[1] + 1) - x.free_classes)),
        credal=False,
    ),
    Nonconformity("intersection", "1 - p*", "1 - p^*_k", lambda x: 1 - x.probability, of_one=True),
    Nonconformity("upper", "1 - upper", "1 - u_k", lambda x: 1 - x.upper, of_one=True),
    Nonconformity("lower", "1 - lower", "1 - l_k", lambda x: 1 - x.lower, of_one=True),
    Nonconformity(
        "dominance", "interval dominance", r"\max_j l_j - u_k", lambda x: x.lower.max(axis=1, keepdims=True) - x.upper
    ),
    Nonconformity(
        "intersection_cumulative", "cumulative p*", r"p^*(A_k) - \theta p^*_k",
        lambda x: _cumulative(x.probability, x.theta),
    ),
    Nonconformity(
        "upper_cumulative", "cumulative upper", r"(1 - \theta) \overline P(A_k) + \theta \overline P(A_k \setminus k)",
        lambda x: _cumulative_bound(x, x.upper, x.lower, np.minimum),
    ),
    Nonconformity(
        "lower_cumulative", "cumulative lower", r"(1 - \theta) \underline P(A_k) + \theta \underline P(A_k \setminus k)",
        lambda x: _cumulative_bound(x, x.lower, x.upper, np.maximum),
    ),
)  # fmt: skip
NONCONFORMITY: Final = {score.name: score for score in _CATALOGUE}


@dataclass(frozen=True)
class SetScore:
    """A score of the catalogue with its settings.

    :ivar seed: of theta, a hash of the mean, so that an input has the same in every batch and precision.
    :ivar penalty: RAPS' lambda.
    :ivar free_classes: how many classes are without penalty.
    :ivar of_bits: whether theta depends on the last digits, as in files of versions 1 and 2, whose thresholds were found so.
    """

    method: str = "lac"
    seed: int = 0
    penalty: float = 0.01
    free_classes: int = 5
    of_bits: bool = False

    def __post_init__(self) -> None:
        check_choice(self.method, NONCONFORMITY, "method")
        check_count(self.seed, "seed", least=0)
        check_count(self.free_classes, "free_classes", least=0)
        if not 0 <= check_real(self.penalty, "penalty", "a number of at least 0") < math.inf:
            raise ValueError(f"penalty must be finite and at least 0; got {self.penalty!r}.")

    def lowest(self, scores: NDArray[np.float64], rounding: float, /) -> NDArray[np.float64]:
        """The lowest scores that these may stand for; probabilities may differ by ``rounding``, relatively."""
        relative = DIGITS + ROUNDINGS * rounding
        return scores - (relative * ((1 - scores) if NONCONFORMITY[self.method].of_one else 1.0) + LAST_DIGIT)

    def of(self, prediction: CredalPrediction, /) -> NDArray[np.float64]:
        """How badly each class fits each input, (rows, classes)."""
        arrays = [to_numpy(getattr(prediction, name))[0] for name in ("lower", "upper", "probability", "mean")]
        low, high, p, mean = (np.asarray(x, np.float64).reshape(-1, x.shape[-1]) for x in arrays)
        theta = hashed_uniforms(mean, self.seed, of_bits=self.of_bits)
        return NONCONFORMITY[self.method].compute(Rows(low, high, p, mean, theta, self.penalty, self.free_classes))


def of_earlier_version(fields: dict[str, Any], /) -> dict[str, Any]:
    """The fields of sets of versions 1 and 2: thresholds go with the theta that they were found with."""
    return {**fields, "score": {**fields["score"], "of_bits": True}}


@dataclass(frozen=True, eq=False)
class ConformalSets(Saved):
    r"""Split-conformal sets: the classes whose nonconformity is at most a quantile of that of true classes.

    Use them to offer a few classes instead of one; :meth:`fit` makes them.

    For inputs exchangeable with those it was fitted on :math:`P(y \in C(x)) \ge 1 - \alpha`; with ``by_class`` also
    within every class y. The probability is over calibration data and new input together. Classes stay whose nonconformity
    is above the quantile by no more than rounding explains.

    :ivar thresholds: (classes,), the largest nonconformity that is kept; infinite if there were too few samples.
    :ivar n_samples: how many samples it was fitted on.
    """

    FORMAT = SavedFormat("conformal-sets", 4, {1: of_earlier_version, 2: of_earlier_version, 3: dict})

    score: SetScore
    alpha: float
    by_class: bool
    allow_empty: bool
    fitted_on: Signature
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
        signature = Signature.of(prediction)
        truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape)).ravel()
        warn_shifted_labels(truth, to_numpy(prediction.predict())[0].ravel(), stacklevel=3)
        rate, score = check_fraction(alpha, "alpha"), SetScore(method, seed, penalty, free_classes)
        own = np.take_along_axis(score.of(prediction), truth[:, None], axis=1)[:, 0]
        groups = [own[truth == k] for k in range(signature.classes)] if by_class else [own]
        least = least_samples(rate)
        if scarce := [str(k) for k, group in enumerate(groups) if len(group) < least]:
            given = f"got {count_text(len(own), 'sample')},"
            who, kept = (f"classes {', '.join(scarce)} have", "they are") if by_class else (given, "every class is")
            warnings.warn(
                f"{who} fewer than the {least} that a coverage of {1 - rate:g} needs: {kept} in every set.",
                stacklevel=2,
            )
        limits = np.array([conformal_quantile(group, rate) for group in groups])
        thresholds = np.broadcast_to(limits, signature.classes).copy()
        return cls(score, rate, bool(by_class), bool(allow_empty), signature, len(truth), thresholds)

    def predict_set(self, prediction: CredalPrediction, /) -> Any:
        """The sets as masks (*batch, classes)."""
        self.fitted_on.check(Signature.of(prediction))
        return array_kind_of(prediction.lower).restore(self.masks(prediction))

    def masks(self, prediction: CredalPrediction, /) -> NDArray[np.bool_]:
        """`predict_set` without the check of the signature, in NumPy."""
        scores = self.score.of(prediction)
        lowest = self.score.lowest(scores, difference(self.fitted_on.rounding, prediction._rounding))
        masks = lowest <= self.thresholds
        if not self.allow_empty:
            best = (lowest <= scores.min(axis=1, keepdims=True)).argmax(axis=1)  # the first where rounding makes a tie
            masks[np.arange(len(masks)), best] |= ~masks.any(axis=1)
        return masks.reshape(prediction.lower.shape)

    def saved_fields(self) -> dict[str, Any]:
        """The fields that are saved, also within a guard."""
        return {**vars(self), "score": asdict(self.score), "fitted_on": self.fitted_on.without_base()}

    @classmethod
    def restored(cls, fields: dict[str, Any], /) -> ConformalSets:
        """The sets from what :meth:`saved_fields` gave, as read from a file."""
        score, signature = SetScore(**fields["score"]), Signature.restored(fields["fitted_on"])
        check_fraction(fields["alpha"], "alpha")
        return cls(**{**fields, "score": score, "fitted_on": signature, "thresholds": numbers(fields["thresholds"])})


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
    Signature.of(calibration).check(Signature.of(test))
    truth, qualities = read_labels(test_labels, "test_labels", np.broadcast_to(0, test.lower.shape)).ravel(), []
    rows = np.arange(len(truth))
    for alpha in alphas:
        for method in methods:
            sets = ConformalSets.fit(calibration, labels, alpha=alpha, method=method, by_class=by_class, seed=seed)
            masks, scores = sets.masks(test).reshape(len(truth), -1), sets.score.of(test)
            covered, sizes = masks[rows, truth], masks.sum(axis=1)
            threshold = np.sort(scores[rows, truth])[len(rows) - 1 - most_hits(alpha, len(rows))]
            worst = min(float(covered[truth == k].mean()) for k in np.unique(truth))
            equal = (scores <= threshold).sum(axis=1)
            coverage, size, single, equal_size = (float(x.mean()) for x in (covered, sizes, sizes == 1, equal))
            qualities.append(SetQuality(method, sets.alpha, coverage, size, single, worst, equal_size))
    return tuple(qualities)
