"""What a guard did on some data, and whether its promises hold there."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from credalens.arrays import to_numpy
from credalens.checks.labels import read_labels
from credalens.guard.binomial import binomial_interval, binomial_tail, conformal_excess
from credalens.guard.decisions import OFFER, Decisions
from credalens.prediction import CredalPrediction

if TYPE_CHECKING:
    from credalens.guard.decider import Guard

DOUBT: Final = 0.025
"""A promise counts as broken where so many misses had no larger probability."""


@dataclass(frozen=True)
class PromiseCheck:
    """One promise and what was observed: ``hits`` among ``n`` inputs, and the exact 95 % interval of that share.

    :ivar p_value: the probability of this many hits or more if the promise holds.
    """

    name: str
    promised: float
    hits: int
    n: int
    low: float
    high: float
    p_value: float

    @property
    def observed(self) -> float | None:
        """The share; None where there is no input."""
        return self.hits / self.n if self.n else None

    @property
    def kept(self) -> bool:
        """False where the data contradict the promise."""
        return self.p_value > DOUBT


@dataclass(frozen=True, eq=False)
class DecisionCounts:
    """How often a guard decided what; of the parts of a data set they add up.

    :ivar unlike: inputs that are unlike the calibration data.
    :ivar errors: wrong predictions among the accepted; None without labels, as are
    :ivar misses: offered or not, sets without the true class, and
    :ivar concerned: of each promise, the accepted inputs and the errors among them, (promises, 2).
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
            excess = conformal_excess(self.unlike, self.rows, rate, guard.n)
            found.append(_check("false-alarm rate", rate, self.unlike, self.rows, excess))
        if self.concerned is not None:
            for promise, (accepted, errors) in zip(guard.promises, self.concerned.tolist(), strict=True):
                excess = 1 - binomial_tail(errors - 1, accepted, promise.max_error) if errors else 1.0
                found.append(_check(promise.name, promise.max_error, errors, accepted, excess))
        if self.misses is not None and guard.sets is not None:
            excess = conformal_excess(self.misses, self.rows, guard.sets.alpha, guard.sets.n_samples)
            found.append(_check("sets without the true class", guard.sets.alpha, self.misses, self.rows, excess))
        return tuple(found)


def count_decisions(guard: Guard, prediction: CredalPrediction, labels: Any = None, /) -> DecisionCounts:
    """Decide about every input, and count."""
    decided = guard.decide(prediction)
    accepted = np.ravel(to_numpy(decided.accepted)[0])
    counts: dict[str, Any] = {
        "rows": accepted.size,
        "unlike": int((decided.scores > guard.threshold).sum()),
        "accepted": int(accepted.sum()),
        "offered": int((decided.decision == OFFER).sum()) if guard.sets else 0,
    }
    if labels is not None:
        truth = read_labels(labels, "labels", np.broadcast_to(0, prediction.lower.shape))
        counts |= _against(guard, decided, accepted, truth)
    return DecisionCounts(**counts)


def _against(guard: Guard, decided: Decisions, accepted: Any, truth: Any) -> dict[str, Any]:
    """What can be counted with the true classes."""
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


def _check(name: str, promised: float, hits: int, n: int, p_value: float) -> PromiseCheck:
    low, high = binomial_interval(hits, n) if n else (0.0, 1.0)
    return PromiseCheck(name, promised, hits, n, low, high, p_value)
