r"""A promise about the expected cost of accepted decisions, which is a mean of bounded numbers and no error rate.

Costs of n accepted calibration inputs, moved and scaled into [0, 1], are :math:`L_1, ..., L_n`. Were their mean above
:math:`a`, the wealth :math:`\prod_{i \le t} (1 - \lambda_i (L_i - a))` of bets that do not look ahead would ever reach
:math:`1 / p` with a probability of at most :math:`p` (Ville), so that the inverse of the highest wealth is a p-value
(Waudby-Smith and Ramdas 2024). Bets follow the spread of the costs before. The order of the inputs is drawn once, with a
fixed seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.options import check_real, count_text
from credalens.guard.risk import Limits
from credalens.guard.signature import CalibrationData
from credalens.prediction import CredalPrediction

BOLDEST: Final = 0.75
"""The share of its wealth that a bet risks at most."""
HALVINGS: Final = 40
LEVEL: Final = 0.025
"""The probability with which data that keep a promise are called broken, at most."""


@dataclass(frozen=True)
class CostPromise:
    """The expected cost of accepted decisions, as it was tested.

    :ivar max_cost: what it is at most.
    :ivar confidence: with which probability over calibration data that holds.
    :ivar accepted: how many calibration inputs are accepted.
    :ivar mean_cost: of these.
    :ivar p_value: of "the expected cost is above ``max_cost``".
    :ivar bound: the expected cost that these numbers rule out at the same confidence.
    """

    max_cost: float
    confidence: float = 0.95
    accepted: int = 0
    mean_cost: float = 0.0
    p_value: float = 1.0
    bound: float = math.inf

    @property
    def name(self) -> str:
        """In words."""
        return "expected cost"


@dataclass(frozen=True)
class CostCheck:
    """What accepted actions cost on other data: ``total`` of ``n``, in costs that differ by at most ``span``.

    :ivar promised: the expected cost that was promised.
    """

    promised: float
    total: float
    n: int
    span: float

    @property
    def observed(self) -> float | None:
        """The mean cost; None where nothing was accepted."""
        return self.total / self.n if self.n else None

    @property
    def p_value(self) -> float:
        """Of a mean cost that far above the promise, if the promise is kept (Hoeffding)."""
        above = 0.0 if self.observed is None else max(0.0, self.observed - self.promised) / self.span
        return math.exp(-2 * self.n * above**2)

    @property
    def kept(self) -> bool:
        """Whether these data leave possible that it is kept; one that is kept is called broken with a probability of 0.025."""
        return self.p_value > LEVEL

    def __add__(self, other: CostCheck) -> CostCheck:
        return replace(self, total=self.total + other.total, n=self.n + other.n)


def cheapest_action(prediction: CredalPrediction, costs: NDArray[np.float64], point: str, /) -> NDArray[np.int64]:
    """The action of least expected cost under a point prediction, (*batch); the first of several that are equal."""
    chosen: NDArray[np.bool_] = to_numpy(prediction.predict_set(f"expected_{point}", costs))[0]
    return chosen.argmax(axis=-1)


@dataclass(frozen=True, eq=False)
class TestedCost:
    """The costs of accepted decisions at every limit: what a search for a limit asks of a risk.

    :ivar costs: of all calibration inputs, scaled into [0, 1], in the order of their scores.
    :ivar allowed: the promised mean, scaled as they are.
    :ivar low: the lowest cost there is, and ``span`` the distance to the highest.
    """

    costs: NDArray[np.float64]
    accepted: NDArray[np.int64]
    order: NDArray[np.int64]
    allowed: float
    low: float
    span: float
    confidence: float

    @classmethod
    def of(
        cls, data: CalibrationData, costs: NDArray[np.float64], actions: NDArray, max_cost: float, limits: Limits,
        confidence: float, /,
    ) -> TestedCost:  # fmt: skip
        """Decisions about the calibration data; refused where the promise is empty or cannot be kept."""
        if (labels := data.labels) is None:
            raise ValueError("a promise about costs needs labels, the true classes of the calibration inputs.")
        wanted = check_real(max_cost, "max_cost", "a number in the unit of the costs")
        low, high = float(costs.min()), float(costs.max())
        if not low < wanted < high:
            why = (
                "no decision costs less" if wanted <= low else "every decision costs less, so that it promises nothing"
            )
            raise ValueError(
                f"max_cost={wanted:.6g} must lie between the lowest and highest cost, {low:.6g} and {high:.6g}: {why}."
            )
        paid = (costs[actions, labels] - low) / (high - low)
        by_score = np.argsort(data.scores, kind="stable")
        order = np.random.default_rng(0).permutation(len(paid))
        return cls(paid[by_score], limits.counts, order, (wanted - low) / (high - low), low, high - low, confidence)

    def fewest(self, share: float = 1.0, /) -> int:
        """The fewest accepted inputs that can promise anything, if none of them costs more than the least."""
        growth = math.log1p(BOLDEST / (1 - self.allowed) * self.allowed)
        return math.ceil(-math.log(share * (1 - self.confidence)) / growth)

    @property
    def most(self) -> int:
        """How many inputs the loosest limit accepts."""
        return int(self.accepted.max(initial=0))

    def p_value(self, place: int, /) -> float:
        """Of "the expected cost is above the one that is allowed"."""
        return mean_above(self._paid(place), self.allowed, 1 - self.confidence)

    def mean(self, place: int, /) -> float:
        """The mean cost of accepted decisions, in the unit of the costs."""
        return self.low + self.span * float(self._paid(place).mean())

    def bound(self, place: int, /) -> float:
        """The expected cost that the accepted ones rule out, in the unit of the costs."""
        paid, low, high = self._paid(place), 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            ruled_out = mean_above(paid, middle, 1 - self.confidence) <= 1 - self.confidence
            low, high = (low, middle) if ruled_out else (middle, high)
        return self.low + self.span * high

    def shortfall(self, score: str, place: int, /) -> str:
        """Why no limit can promise it."""
        wanted = self.low + self.span * self.allowed
        needed = f"at least {self.fewest():,} accepted inputs are needed for it, even if each costs the least"
        certain = count_text(int(self.accepted[place]), "most certain calibration input")
        return (
            f"no limit of {score!r} can promise an expected cost of at most {wanted:.6g} with {self.confidence:.3g} "
            f"confidence: the {certain} cost {self.mean(place):.4g} on average (enough for {self.bound(place):.4g}), and "
            f"{needed}. Allow a higher cost, add an action that hands over, or take more data."
        )

    def _paid(self, place: int) -> NDArray[np.float64]:
        """The costs of what is accepted, in the order that was drawn."""
        return self.costs[self.order[self.order < self.accepted[place]]]


def mean_above(values: NDArray[np.float64], mean: float, level: float, /) -> float:
    """The p-value of "the expectation is above ``mean``" for independent values in [0, 1]; most powerful at ``level``.

    >>> mean_above(np.zeros(100), 0.05, 0.05) < 0.05, mean_above(np.full(100, 0.1), 0.05, 0.05)
    (True, 1.0)
    """
    if not len(values):
        return 1.0
    places = np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (places + 1)
    spread = (0.25 + np.cumsum((values - means) ** 2)) / (places + 1)
    before = np.append(0.25, spread[:-1])
    bets = np.minimum(np.sqrt(2 * math.log(1 / level) / (len(values) * before)), BOLDEST / (1 - mean))
    wealth = np.cumsum(np.log1p(-bets * (values - mean)))
    return min(1.0, math.exp(-float(wealth.max())))
