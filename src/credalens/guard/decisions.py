"""The decisions of a guard about each input of a batch, with reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind
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
