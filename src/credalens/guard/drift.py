r"""DriftAlarm: watches the scores of a stream and says when they are no longer like those of the calibration data.

Evidence of drift is the wealth of a player who bets on p-values. Judged against a fixed calibration set alone, these are not
uniform given that set, and a martingale on them passes every bound sooner or later, drift or not. Sound are ranks among all
scores so far, and a fixed reference with a margin.

A bet :math:`f_e(p) = e p^{e-1}` integrates to one, hence wealth that is multiplied by it is a martingale while p-values are
independent and uniform. The player holds a mixture over bets e and over the input t at which to begin:

.. math:: M_n = W_n + \sum_{t \le n} w_t \frac1E \sum_e \prod_{i=t}^n f_e(p_i), \quad
          W_t = \frac1{1 + \ln(1 + t)}, \quad w_t = W_{t-1} - W_t

Without the mixture over beginnings all wealth is lost on a long stream without drift, and a late drift is noticed late.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import read_sample_scores, read_scores
from credalens.checks.options import check_choice, check_count, check_fraction, check_tolerance, count_text
from credalens.guard.binomial import upper_bound
from credalens.guard.signature import DIGITS, Slack
from credalens.storage.saved import Saved, SavedFormat, number, numbers

CHUNK = 256  # scores that are compared pair by pair
STEP = 1.05  # from one count of the margin's grid to the next
CELL = 4.0  # tolerances: a value is at least one of them away from the border of its cell, on one of two grids
FARTHEST = 2.0**50  # place that can be told from its neighbours


class RankedScores:
    r"""A p-value of each score among all scores so far, which joins them: no smaller than an independent, uniform one.

    .. math:: p = (|\{i : s_i > s\}| + \theta (|\{i : s_i = s\}| + 1)) / (n + 1), \quad \theta \sim U(0, 1]

    Scores are compared on a grid, so that those equal but for rounding are ties. A value on the border of two cells would be
    torn apart by rounding; so there are two grids, half a cell apart, and the larger p-value counts. While scores are
    exchangeable that of either grid is independent and uniform, and bets on the larger one win no more.

    Scores lie in sorted blocks, each less than half as long as the one before: O(log n) merges per score.

    :ivar tolerance: what rounding explains of a score, relative to one and the score.
    """

    def __init__(self, places: NDArray[np.float64], tolerance: float) -> None:
        self.tolerance = tolerance
        self._blocks = [np.sort(places)]

    @classmethod
    def of(cls, scores: NDArray[np.float64], tolerance: float, /) -> RankedScores:
        """The ranks of calibration scores."""
        return cls(_places(scores, tolerance), tolerance)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays to restore it from: where all scores so far lie, in cells of the grid."""
        return {"places": np.sort(np.concatenate(self._blocks))}

    def p_values(self, scores: NDArray[np.float64], theta: NDArray[np.float64], /) -> NDArray[np.float64]:
        """The p-values of ``scores`` in their order; ``theta`` breaks ties."""
        every_place, p = _places(scores, self.tolerance), np.empty(len(scores))
        for start in range(0, len(scores), CHUNK):
            chunk = slice(start, start + CHUNK)
            places = every_place[chunk]
            n = sum(map(len, self._blocks)) + np.arange(len(places))
            on_grids = [self._ranks(places, np.floor(places + half) - half, theta[chunk]) for half in (0.0, 0.5)]
            p[chunk] = np.maximum(*on_grids) / (n + 1)
            block = np.sort(places)
            while self._blocks and len(self._blocks[-1]) <= 2 * len(block):
                block = np.sort(np.concatenate([self._blocks.pop(), block]), kind="stable")  # merges sorted runs
            self._blocks.append(block)
        return p

    def _ranks(self, places: NDArray, low: NDArray, theta: NDArray) -> NDArray[np.float64]:
        """How many lie above the cell that begins at ``low``, and a part of those in it."""
        high = low + 1
        earlier = np.tri(len(places), k=-1, dtype=bool)
        above = (earlier & (places >= high[:, None])).sum(axis=1)
        upto = (earlier & (places >= low[:, None])).sum(axis=1)
        for block in self._blocks:
            above = above + len(block) - np.searchsorted(block, high, "left")
            upto = upto + len(block) - np.searchsorted(block, low, "left")
        return above + theta * (upto - above + 1)


def _places(scores: NDArray, tolerance: float) -> NDArray[np.float64]:
    """Where scores lie, in cells of a grid that are four tolerances wide; they grow with the score, as rounding does."""
    logs = np.sign(scores) * np.log1p(np.abs(scores))
    return np.clip(logs / (CELL * tolerance), -FARTHEST, FARTHEST)


@dataclass(frozen=True, eq=False)
class FixedReference:
    r"""Upper bounds of P(S >= s) that hold for all s at once with probability 1 - delta over the calibration scores.

    For counts k on a geometric grid, the exact binomial upper limit at delta / K of a share of k in n bounds P(S >= s) for
    every s with at most k calibration scores at or above it. A bet that decreases in p gains less with a bound than with p.

    :ivar thresholds: rising; score number ``k`` from the top for each k of the grid.
    :ivar bounds: one more, falling: the p-value of scores above j thresholds is ``bounds[j]``.
    :ivar tolerance: what rounding explains of a score, relative to one and the score.
    """

    thresholds: NDArray[np.float64]
    bounds: NDArray[np.float64]
    tolerance: float

    @classmethod
    def of(cls, scores: NDArray[np.float64], delta: float, tolerance: float, /) -> FixedReference:
        """The reference of calibration scores."""
        from_top = np.sort(scores)[::-1][list(grid_counts(len(scores)))]
        return cls(from_top[::-1], np.array([1.0, *upper_limits(len(scores), delta)[::-1]]), tolerance)

    @staticmethod
    def least(delta: float, /) -> int:
        """How many calibration scores are needed for a bet to win at all: the lowest bound is below 1 / e."""
        return next(n for n in count(1) if upper_limits(n, delta)[0] < 1 / math.e)

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays to restore it from."""
        return {"thresholds": self.thresholds, "bounds": self.bounds}

    def p_values(self, scores: NDArray[np.float64], /) -> NDArray[np.float64]:
        """The bound for each score: that of the smallest count k with fewer than k + 1 calibration scores at or above it."""
        lowest = Slack(self.tolerance, self.tolerance).lowest(scores)
        return self.bounds[np.searchsorted(self.thresholds, lowest, "left")]


def grid_counts(n: int, /) -> tuple[int, ...]:
    """0, 1, 2, ... and then steps of a twentieth, below n."""
    counts, k = [], 0
    while k < n:
        counts.append(k)
        k = max(k + 1, math.floor(STEP * k))
    return tuple(counts)


@cache
def upper_limits(n: int, delta: float, /) -> tuple[float, ...]:
    """Limits for all counts of the grid that hold together with probability 1 - delta."""
    counts = grid_counts(n)
    return tuple(upper_bound(k, n, level=1 - delta / len(counts)) for k in counts)


BETS: Final = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)  # the exponents e, from strong drifts to weak ones


@dataclass(frozen=True, eq=False)
class Wealth:
    r"""The wealth after ``count`` p-values, in logarithms.

    :ivar growth: for each bet :math:`L = \sum_i \ln f_e(p_i)`.
    :ivar stakes: for each bet :math:`\ln \sum_t w_t e^{-L_{t-1}} / E`, so that growth + stakes is the wealth in it.
    """

    count: int
    growth: NDArray[np.float64]
    stakes: NDArray[np.float64]

    @classmethod
    def start(cls) -> Wealth:
        """Before any bet: the wealth is one."""
        return cls(0, np.zeros(len(BETS)), np.full(len(BETS), -np.inf))

    def after(self, p_values: NDArray[np.float64], /) -> tuple[Wealth, NDArray[np.float64]]:
        """The wealth after more p-values (n,) in (0, 1], and the logarithm of its value after each of them.

        Sums run in the order of the stream, hence p-values one at a time or in batches give the same bits.
        """
        e, t = np.array(BETS), self.count + np.arange(1.0, len(p_values) + 1)
        gains = np.log(e) + (e - 1) * np.log(p_values)[:, None]
        growth = np.add.accumulate(np.concatenate([self.growth[None], gains]))
        # The logarithm of w_t, written without a difference of almost equal numbers.
        log_begun = np.log(np.log1p(1 / t)) + _log_kept(t - 1) + _log_kept(t)
        begun = log_begun[:, None] - np.log(len(BETS)) - growth[:-1]
        stakes = np.logaddexp.accumulate(np.concatenate([self.stakes[None], begun]))
        values = np.logaddexp(np.logaddexp.reduce(growth[1:] + stakes[1:], axis=1), _log_kept(t))
        return Wealth(self.count + len(p_values), growth[-1], stakes[-1]), values


def _log_kept(t: NDArray) -> NDArray:
    """The logarithm of W_t: what is kept for beginnings after t."""
    return -np.log1p(np.log1p(t))


LARGEST: Final = math.log(np.finfo(np.float64).max)
METHODS: Final = {"online": RankedScores, "fixed": FixedReference}
PLAIN: Final = ("method", "alpha", "tolerance", "n_calibration", "n_seen", "alarm_at", "log_value")
COARSE: Final = 1000  # tolerances over which calibration scores are spread at least, unless they are not meant for it


def _from_version_1(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an alarm that compared scores to the last digit."""
    reference = fields["reference"]
    if fields["method"] == "online":
        reference = {"places": RankedScores.of(numbers(reference["scores"]), DIGITS).arrays()["places"].tolist()}
    return {**fields, "tolerance": DIGITS, "reference": reference}


class DriftAlarm(Saved):
    r"""Raises an alarm when the scores of a stream become higher than those of the calibration data.

    While all scores are exchangeable, calibration and stream together, the probability that it is *ever* raised is at most
    ``alpha``, however long the stream is. The value is a test martingale on p-values of the stream,
    and the alarm is raised once it reaches ``1 / alpha`` (Ville's inequality). Correlated
    inputs, such as the frames of a video, are not exchangeable and count as drift.

    - ``method="online"`` ranks each score among the calibration scores and the whole stream so far; a generator with ``seed``
      breaks ties. Keeps all scores: 8 bytes each.
    - ``method="fixed"`` compares with the calibration scores only, with a margin that makes up for their number: one half
      of ``alpha`` pays for the margin, the other for the martingale. Keeps one or two hundred numbers.

    Scores count as equal if rounding explains their difference: ``tolerance``, times one and the score. The default is for
    the scores of the catalogue, of members in float32 or float64; give a smaller one for scores of another scale, and a larger
    one where calibration or stream, but not both, is of members in half precision: 0.004 for float16, 0.032 for bfloat16,
    three times as much for logits.

    ``value`` is the evidence so far and ``log_value`` its natural logarithm, which does not overflow; ``alarm_at`` is how many
    inputs had been seen when the alarm was raised, or None.

    How soon it is raised if 5, 10, 20 or 50 % of the inputs come from the top tenth of 2,000 calibration scores: after 1001,
    147, 49 or 12 inputs online; with a fixed reference never, or after 2072, 163 or 22 (medians). The page "Sets, intervals and
    alarms with a promise" has more, also for real images and late drifts.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> alarm = DriftAlarm(rng.normal(size=1000))
    >>> _ = alarm.update(rng.normal(size=1000))
    >>> alarm.alarm, alarm.value < 20
    (False, True)
    >>> _ = alarm.update(rng.normal(size=1000) + 1)
    >>> alarm.alarm, alarm.alarm_at
    (True, 1029)
    """

    FORMAT = SavedFormat("drift-alarm", 2, {1: _from_version_1})

    def __init__(
        self,
        calibration_scores: Any,
        *,
        alpha: float = 0.05,
        seed: int = 0,
        method: Literal["online", "fixed"] = "online",
        tolerance: float = DIGITS,
    ) -> None:
        scores = read_sample_scores(calibration_scores, "calibration_scores")
        self.tolerance = check_tolerance(tolerance)
        if self.tolerance == 0:
            raise ValueError("tolerance must be above 0; rounding makes ties of equal scores, and breaks them.")
        finite = scores[np.isfinite(scores)]
        if finite.size and 0 < (spread := float(np.ptp(finite))) < COARSE * self.tolerance:
            warnings.warn(
                f"the calibration scores differ by {spread:.3g} at most, and differences of {self.tolerance:.3g} count as "
                "rounding: give tolerance=, what rounding may change of a score.",
                stacklevel=2,
            )
        self.alpha = check_fraction(alpha, "alpha")
        self.method: str = check_choice(method, METHODS, "method")
        self.n_calibration, self.n_seen, self.log_value = len(scores), 0, 0.0
        self.alarm_at: int | None = None
        self._generator = np.random.default_rng(check_count(seed, "seed", least=0))
        self._wealth = Wealth.start()
        self._reference: RankedScores | FixedReference
        if method == "online":
            self._reference = RankedScores.of(scores, self.tolerance)
            return
        if (least := FixedReference.least(self.alpha / 2)) > len(scores):
            raise ValueError(
                f"{count_text(len(scores), 'calibration score')}: too few for a fixed reference at alpha = {self.alpha:g}, no "
                f"score could raise the value. At least {least} are needed; pass more, or use method='online'."
            )
        self._reference = FixedReference.of(scores, self.alpha / 2, self.tolerance)

    @classmethod
    def for_streams(
        cls,
        calibration_scores: Any,
        streams: int,
        *,
        alpha: float = 0.05,
        seed: int = 0,
        method: Any = "online",
        **options: Any,
    ) -> tuple[DriftAlarm, ...]:
        """One alarm for each of several streams; the probability that any of them is falsely raised is at most ``alpha``."""
        share = check_fraction(alpha, "alpha") / check_count(streams, "streams")
        scores = read_sample_scores(calibration_scores, "calibration_scores")
        return tuple(cls(scores, alpha=share, seed=seed + k, method=method, **options) for k in range(streams))

    @property
    def value(self) -> float:
        """The evidence against "no drift" so far, 1 at the beginning; the alarm is raised once it reaches ``bound``."""
        return math.exp(min(self.log_value, LARGEST))

    @property
    def bound(self) -> float:
        """1 / alpha; twice as much for a fixed reference."""
        return (1 if self.method == "online" else 2) / self.alpha

    @property
    def alarm(self) -> bool:
        """Whether the value has ever reached the bound."""
        return self.alarm_at is not None

    def update(self, scores: Any, /, *, tolerance: float | None = None) -> NDArray[np.float64]:
        """Take one score or a batch (n,) in the order of the stream; returns ``log_value`` after each of them.

        One at a time or in batches of any size, the result has the same bits. With ``method="fixed"`` these scores may have a
        larger ``tolerance`` than the alarm's.
        """
        batch = read_sample_scores(np.atleast_1d(read_scores(scores, "scores")), "scores")
        most = self.tolerance if tolerance is None else max(self.tolerance, check_tolerance(tolerance))
        if most > self.tolerance and not isinstance(self._reference, FixedReference):
            raise ValueError(
                f"an online alarm compares all scores on one grid, and this one has tolerance={self.tolerance:g}; got "
                f"tolerance={most:g}. Make it with DriftAlarm(..., tolerance={most:g}), or use method='fixed'."
            )
        if isinstance(self._reference, FixedReference):
            p = replace(self._reference, tolerance=most).p_values(batch)
        else:
            p = self._reference.p_values(batch, 1 - self._generator.random(len(batch)))
        self._wealth, values = self._wealth.after(p)
        reached = values >= math.log(self.bound)
        if self.alarm_at is None and reached.any():
            self.alarm_at = self.n_seen + int(reached.argmax()) + 1
        self.n_seen, self.log_value = self._wealth.count, float(values[-1])
        return values

    def saved_fields(self) -> dict[str, Any]:
        """The fields of the file; after :meth:`load` the alarm continues with the same bits."""
        state = {name: getattr(self, name) for name in PLAIN}
        reference = {"reference": self._reference.arrays(), "generator": self._generator.bit_generator.state}
        return state | {"growth": self._wealth.growth, "stakes": self._wealth.stakes} | reference

    @classmethod
    def restored(cls, fields: dict[str, Any], /) -> DriftAlarm:
        """The alarm from the fields of a file."""
        alarm = object.__new__(cls)
        vars(alarm).update({name: fields[name] for name in PLAIN}, log_value=number(fields["log_value"]))
        arrays = {name: numbers(values) for name, values in fields["reference"].items()}
        alarm._reference = METHODS[check_choice(alarm.method, METHODS, "method")](**arrays, tolerance=alarm.tolerance)
        alarm._wealth = Wealth(alarm.n_seen, numbers(fields["growth"]), numbers(fields["stakes"]))
        alarm._generator = np.random.default_rng()
        alarm._generator.bit_generator.state = fields["generator"]
        return alarm
