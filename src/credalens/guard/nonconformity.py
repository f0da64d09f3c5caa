r"""The catalogue of set scores: how badly each class fits an input. A set keeps the classes that fit well enough.

l, u are the bounds, p* the intersection probability, \bar p the mean. Cumulative scores sum over the classes from the likeliest
down to k, the set :math:`A_k`, and leave out a random part :math:`\theta` in (0, 1] of what k adds: the coverage is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ROUNDINGS, to_numpy
from credalens.checks.options import check_choice, check_count, check_real
from credalens.prediction import CredalPrediction

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
    """
    words = (rows + 0.0 if of_bits else _cells(rows, seed)).view(np.uint64)  # one zero, not two
    keys = np.random.default_rng(seed).integers(2**64, size=words.shape[1] + 1, dtype=np.uint64)
    mixed = keys[0] + ((words ^ (words >> np.uint64(32))) * (keys[1:] | np.uint64(1))).sum(axis=1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the last steps of SplitMix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return 1 - (mixed >> np.uint64(11)) * 2.0**-53


def _cells(rows: NDArray, seed: int) -> NDArray[np.int64]:
    """In which cells of a few grids distributions lie, (rows, grids).

    Each grid is along a random mixture of the logarithms of the probabilities, and begins at a random place: votes, shares of a
    few members and zeros, which many inputs have, lie on a border only by chance.
    """
    rng, classes = np.random.default_rng([seed, GRIDS]), rows.shape[1]
    mixtures = rng.normal(size=(classes, GRIDS)) / (CELL * math.sqrt(classes))
    return np.floor(np.log2(rows + LEAST) @ mixtures + rng.random(GRIDS)).astype(np.int64)


def _falling(p: NDArray) -> NDArray[np.intp]:
    """The classes in the order of falling ``p``; among those equal but for rounding the lower index is first."""
    order = np.argsort(-p, axis=1, kind="stable")
    ordered = np.take_along_axis(p, order, axis=1)
    apart = ordered[:, :-1] - ordered[:, 1:] > DIGITS * ordered[:, :-1]
    tied = ~apart.all(axis=1)
    places = np.zeros_like(order[tied])
    np.put_along_axis(places, order[tied][:, 1:], np.cumsum(apart[tied], axis=1), axis=1)
    order[tied] = np.argsort(places, axis=1, kind="stable")
    return order


def _ranked(p: NDArray, score: Callable[[NDArray], NDArray]) -> NDArray[np.float64]:
    """A score of classes in the order of falling ``p``, given that order."""
    order = _falling(p)
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, score(order), axis=1)
    return scores


def _less_part(sums: NDArray, theta: NDArray) -> NDArray:
    """Sums to each class, without the part theta of its own contribution."""
    return sums - theta[:, None] * np.diff(sums, axis=1, prepend=0.0)


def _sums(x: NDArray, order: NDArray) -> NDArray:
    return np.cumsum(np.take_along_axis(x, order, axis=1), axis=1)


def _cumulative(p: NDArray, theta: NDArray) -> NDArray[np.float64]:
    return _ranked(p, lambda order: _less_part(_sums(p, order), theta))


def _regularised(rows: Rows) -> NDArray[np.float64]:
    extra = rows.penalty * np.maximum(0, np.arange(1, rows.mean.shape[1] + 1) - rows.free_classes)
    return _ranked(rows.mean, lambda order: _less_part(_sums(rows.mean, order), rows.theta) + extra)


def _lower_cumulative(rows: Rows) -> NDArray[np.float64]:
    low, high = rows.lower, rows.upper

    def score(order: NDArray) -> NDArray:
        rest = high.sum(axis=1, keepdims=True) - _sums(high, order)
        return _less_part(np.maximum(_sums(low, order), 1 - rest), rows.theta)

    return _ranked(rows.probability, score)


def _upper_cumulative(rows: Rows) -> NDArray[np.float64]:
    low, high = rows.lower, rows.upper

    def score(order: NDArray) -> NDArray:
        rest = low.sum(axis=1, keepdims=True) - _sums(low, order)
        return _less_part(np.minimum(_sums(high, order), 1 - rest), rows.theta)

    return _ranked(rows.probability, score)


def _dominance(rows: Rows) -> NDArray[np.float64]:
    return rows.lower.max(axis=1, keepdims=True) - rows.upper


NONCONFORMITY: Final = {
    score.name: score
    for score in (
        Nonconformity("lac", "LAC", r"1 - \bar p_k", lambda x: 1 - x.mean, credal=False, of_one=True),
        Nonconformity(
            "aps", "APS", r"\bar p(A_k) - \theta \bar p_k", lambda x: _cumulative(x.mean, x.theta), credal=False
        ),
        Nonconformity(
            "raps", "RAPS", r"\bar p(A_k) - \theta \bar p_k + \lambda (|A_k| - k_0)^+", _regularised, credal=False
        ),
        Nonconformity("intersection", "1 - p*", "1 - p^*_k", lambda x: 1 - x.probability, of_one=True),
        Nonconformity("upper", "1 - upper", "1 - u_k", lambda x: 1 - x.upper, of_one=True),
        Nonconformity("lower", "1 - lower", "1 - l_k", lambda x: 1 - x.lower, of_one=True),
        Nonconformity("dominance", "interval dominance", r"\max_j l_j - u_k", _dominance),
        Nonconformity(
            "intersection_cumulative",
            "cumulative p*",
            r"p^*(A_k) - \theta p^*_k",
            lambda x: _cumulative(x.probability, x.theta),
        ),
        Nonconformity(
            "upper_cumulative",
            "cumulative upper",
            r"(1 - \theta) \overline P(A_k) + \theta \overline P(A_k \setminus k)",
            _upper_cumulative,
        ),
        Nonconformity(
            "lower_cumulative",
            "cumulative lower",
            r"(1 - \theta) \underline P(A_k) + \theta \underline P(A_k \setminus k)",
            _lower_cumulative,
        ),
    )
}


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
