"""Decisions of a guard: what it decided about each input and why, how often, and whether its promises hold there."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind
from credalens.guard.binomial import binomial_interval, binomial_tail, conformal_excess, largest_kept
from credalens.guard.cost_risk import LEVEL, CostCheck, cheapest_action
from credalens.guard.signature import Slack, named_class
from credalens.prediction import CredalPrediction

ACCEPT, OFFER, ABSTAIN = DECISIONS = ("accept", "offer", "abstain")


class Reason(IntEnum):
    """The reason for a decision, as a place in ``REASONS`` and ``DECISION_BY_REASON``."""

    LIKE, SEVERAL, UNLIKE, RISKY, MANY, NONE = range(6)


REASONS: Final = (
    "like the calibration data",
    "a few classes are possible",
    "unlike the calibration data",
    "too uncertain for the promised error rate",
    "too many classes are possible",
    "no class is possible",
)
DECISION_BY_REASON: Final = (ACCEPT, OFFER, *(ABSTAIN,) * 4)
_DECISION_TEXTS, _REASON_TEXTS = np.array(DECISION_BY_REASON), np.array(REASONS)


class Decider(Protocol):
    """All that decisions ask later of the guard that made them."""

    @property
    def point(self) -> str:
        """Which point prediction names the class."""

    @property
    def costs(self) -> NDArray[np.float64] | None:
        """Of actions for true classes, if it takes actions."""

    def p_values(self, scores: NDArray, rounding: float, /) -> NDArray[np.float64]:
        """The p-value of each score of being like the calibration data; ``rounding`` is that of its members."""

    def reasons(self, scores: NDArray, rounding: float, /) -> NDArray[np.int8]:
        """The `Reason` why each score is accepted or not."""

    def slack(self, rounding: float, /) -> Slack:
        """By how much a score may be off."""


@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """The result of ``Guard.decide``: arrays (*batch) in the caller's library, except those that hold text.

    :ivar accepted: whether the prediction may be used as it is.
    :ivar scores: the guard's score, in float64.
    :ivar set: the classes that may be offered, a mask (*batch, classes); None if the guard has no sets.
    """

    accepted: Any
    scores: NDArray[np.float64]
    set: Any
    _codes: NDArray[np.int8] | None = field()
    _guard: Decider = field()
    _prediction: CredalPrediction = field()
    _array_kind: ArrayKind = field()

    @cached_property
    def p_value(self) -> Any:
        """The conformal p-value of being like the calibration data; computed on first access."""
        return self._array_kind.restore(self._guard.p_values(self.scores, self._prediction._rounding))

    @cached_property
    def prediction(self) -> Any:
        """The class that the guard's point prediction names; computed on first access."""
        return named_class(self._prediction, self._guard.point)

    @cached_property
    def action(self) -> Any:
        """The action of least expected cost under the guard's point prediction, as a row of its costs; on first access."""
        if (costs := self._guard.costs) is None:
            raise ValueError(
                "this guard knows no costs, so that it names classes (.prediction); fit it with costs= and max_cost=."
            )
        return self._array_kind.restore(cheapest_action(self._prediction, costs, self._guard.point))

    @cached_property
    def decision(self) -> NDArray[np.str_]:
        """ "accept", "abstain", or "offer" for a small set of classes."""
        return _DECISION_TEXTS[self.codes]

    @cached_property
    def reason(self) -> NDArray[np.str_]:
        """The reason for the decision, as text."""
        return _REASON_TEXTS[self.codes]

    @cached_property
    def codes(self) -> NDArray[np.int8]:
        """The `Reason` of each decision."""
        return self._guard.reasons(self.scores, self._prediction._rounding) if self._codes is None else self._codes

    @property
    def slack(self) -> Slack:
        """By how much the scores may be off: by more, where members come in half precision."""
        return self._guard.slack(self._prediction._rounding)

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={np.count_nonzero(self.decision == name)}" for name in DECISIONS)
        return f"Decisions({counts})"


@dataclass(frozen=True)
class PromiseCheck:
    """One promise and what was observed: ``hits`` among ``n`` inputs.

    The test is exact. For false alarms and sets it allows for the luck of calibration: they promise a mean over draws of the
    calibration data, and the rate of a single guard may be above it.

    :ivar calibrated: the number of calibration inputs of a promise that is a mean over draws of them; None of one that holds
        for the guard itself.
    """

    name: str
    promised: float
    hits: int
    n: int
    calibrated: int | None = None

    @property
    def observed(self) -> float | None:
        """The share; None where there is no input."""
        return self.hits / self.n if self.n else None

    @property
    def low(self) -> float:
        """Lower end of the exact 95 % interval of the share among inputs like the observed ones."""
        return self._interval[0]

    @property
    def high(self) -> float:
        """Its upper end."""
        return self._interval[1]

    @cached_property
    def _interval(self) -> tuple[float, float]:
        return binomial_interval(self.hits, self.n) if self.n else (0.0, 1.0)

    @cached_property
    def p_value(self) -> float:
        """The largest probability of this many hits or more if the promise holds."""
        return self._excess(self.hits)

    @cached_property
    def holds_up_to(self) -> float:
        """The largest share of ``n`` that does not contradict the promise."""
        return largest_kept(self._excess, self.n, LEVEL) / self.n if self.n else 1.0

    @property
    def kept(self) -> bool:
        """False if the data contradict the promise; a promise that holds is contradicted in at most 2.5 % of such checks."""
        return self.p_value > LEVEL

    def _excess(self, hits: int) -> float:
        """The probability of so many hits or more, at the rate that is promised."""
        if self.calibrated is not None:
            return conformal_excess(hits, self.n, self.promised, self.calibrated)
        return 1 - binomial_tail(hits - 1, self.n, self.promised) if hits else 1.0


@dataclass(frozen=True)
class DecisionCounts:
    """How often a guard decided what; of the parts of a data set they add up.

    :ivar unlike: inputs that are unlike the calibration data.
    :ivar errors: wrong predictions among the accepted; None without labels.
    :ivar misses: sets without the true class, offered or not; None without labels.
    :ivar checks: every promise about a share that can be checked with these data.
    :ivar cost: of accepted actions; None without labels, and without a promise about it.
    """

    rows: int
    unlike: int
    accepted: int
    offered: int
    errors: int | None = None
    misses: int | None = None
    checks: tuple[PromiseCheck, ...] = ()
    cost: CostCheck | None = None

    def __add__(self, other: DecisionCounts) -> DecisionCounts:
        def total(name: str) -> Any:
            own, more = getattr(self, name), getattr(other, name)
            return None if own is None or more is None else own + more

        pairs = zip(self.checks, other.checks, strict=True)
        checks = tuple(replace(own, hits=own.hits + more.hits, n=own.n + more.n) for own, more in pairs)
        counts = {part.name: total(part.name) for part in fields(self) if part.name != "checks"}
        return DecisionCounts(**counts, checks=checks)
