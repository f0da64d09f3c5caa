"""What a guard decided about each input, why, and whether its promises hold there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind, to_numpy
from credalens.checks.labels import read_labels
from credalens.guard.binomial import binomial_interval, binomial_tail, conformal_excess, largest_kept
from credalens.prediction import CredalPrediction

if TYPE_CHECKING:
    from credalens.guard.decider import Guard


ACCEPT, OFFER, ABSTAIN = DECISIONS = ("accept", "offer", "abstain")
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
    _guard: Guard = field()
    _prediction: CredalPrediction = field()
    _array_kind: ArrayKind = field()

    @cached_property
    def p_value(self) -> Any:
        """The conformal p-value of being like the calibration data; computed on first access."""
        return self._array_kind.restore(self._guard.p_values(self.scores, self._prediction._rounding))

    @cached_property
    def prediction(self) -> Any:
        """The class that the guard's point prediction names; computed on first access."""
        return self._guard.signature.predicted(self._prediction)

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
        """The place of each reason in ``REASONS``, and of its decision in ``DECISION_BY_REASON``."""
        return self._guard.reasons(self.scores, self._prediction._rounding) if self._codes is None else self._codes

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={np.count_nonzero(self.decision == name)}" for name in DECISIONS)
        return f"Decisions({counts})"


LEVEL: Final = 0.025
"""The probability with which data that keep a promise are called broken, at most."""


@dataclass(frozen=True)
class PromiseCheck:
    """One promise and what was observed: ``hits`` among ``n`` inputs.

    The test is exact. For false alarms and sets it allows for the luck of calibration: they promise a mean over draws of the
    calibration data, and the rate of a single guard may be above it.

    :ivar low: lower end of the exact 95 % interval of the share among inputs like the observed ones.
    :ivar high: its upper end.
    :ivar p_value: the largest probability of this many hits or more if the promise holds.
    :ivar holds_up_to: the largest share of ``n`` that does not contradict the promise.
    """

    name: str
    promised: float
    hits: int
    n: int
    low: float
    high: float
    p_value: float
    holds_up_to: float

    @property
    def observed(self) -> float | None:
        """The share; None where there is no input."""
        return self.hits / self.n if self.n else None

    @property
    def kept(self) -> bool:
        """False if the data contradict the promise; a promise that holds is contradicted in at most 2.5 % of such checks."""
        return self.p_value > LEVEL


@dataclass(frozen=True, eq=False)
class DecisionCounts:
    """How often a guard decided what; of the parts of a data set they add up.

    :ivar unlike: inputs that are unlike the calibration data.
    :ivar errors: wrong predictions among the accepted; None without labels.
    :ivar misses: sets without the true class, offered or not; None without labels.
    :ivar concerned: of each promise, the accepted inputs and the errors among them, (promises, 2); None without labels.
    """

    rows: int
    unlike: int
    accepted: int
    offered: int
    errors: Any = None
    misses: Any = None
    concerned: Any = None

    def __add__(self, other: DecisionCounts) -> DecisionCounts:
        def added(name: str) -> Any:
            own = getattr(self, name)
            return None if own is None else own + getattr(other, name)

        return DecisionCounts(*(added(part.name) for part in fields(self)))

    def checks(self, guard: Guard, /) -> tuple[PromiseCheck, ...]:
        """Every promise of the guard that can be checked with these data."""
        found = []
        if (rate := guard.false_alarm_rate) is not None:
            excess = partial(conformal_excess, n=self.rows, rate=rate, calibrated=guard.n)
            found.append(_check("false-alarm rate", rate, self.unlike, self.rows, excess))
        if self.concerned is not None:
            for promise, (accepted, errors) in zip(guard.promises, self.concerned.tolist(), strict=True):
                excess = partial(_binomial_excess, n=accepted, rate=promise.max_error)
                found.append(_check(promise.name, promise.max_error, errors, accepted, excess))
        if self.misses is not None and (sets := guard.sets) is not None:
            excess = partial(conformal_excess, n=self.rows, rate=sets.alpha, calibrated=sets.n_samples)
            found.append(_check("sets without the true class", sets.alpha, self.misses, self.rows, excess))
        return tuple(found)


def count_decisions(guard: Guard, prediction: CredalPrediction, labels: Any = None, /) -> DecisionCounts:
    """Decide about every input, and count."""
    decided = guard.decide(prediction)
    accepted = np.ravel(to_numpy(decided.accepted)[0])
    counts: dict[str, Any] = {
        "rows": accepted.size,
        "unlike": int((decided.codes == UNLIKE).sum()),
        "accepted": int(accepted.sum()),
        "offered": int((decided.decision == OFFER).sum()) if guard.sets else 0,
    }
    if labels is not None:
        truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape))
        counts |= _against(guard, decided, accepted, truth)
    return DecisionCounts(**counts)


def _against(guard: Guard, decided: Decisions, accepted: Any, truth: Any) -> dict[str, Any]:
    """The counts that need the true classes."""
    named, labels = np.ravel(to_numpy(decided.prediction)[0]), truth.ravel()
    wrong = accepted & (named != labels)
    concerned = [accepted & promise.concerns(named, labels) for promise in guard.promises]
    counts: dict[str, Any] = {
        "errors": int(wrong.sum()),
        "concerned": np.array([[group.sum(), (group & wrong).sum()] for group in concerned]).reshape(-1, 2),
    }
    if decided.set is not None:
        held = np.take_along_axis(to_numpy(decided.set)[0], truth[..., None], axis=-1)
        counts["misses"] = int((~held).sum())
    return counts


def _binomial_excess(hits: int, /, n: int, rate: float) -> float:
    """P(X >= hits) for X binomial of n with probability ``rate``."""
    return 1 - binomial_tail(hits - 1, n, rate) if hits else 1.0


def _check(name: str, promised: float, hits: int, n: int, excess: Callable[[int], float]) -> PromiseCheck:
    low, high = binomial_interval(hits, n) if n else (0.0, 1.0)
    holds_up_to = largest_kept(excess, n, LEVEL) / n if n else 1.0
    return PromiseCheck(name, promised, hits, n, low, high, excess(hits), holds_up_to)
