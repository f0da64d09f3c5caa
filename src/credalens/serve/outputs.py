"""The catalogue of outputs: what a request may ask for by name, and what it gets if it names nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.core.scores import SCORES
from credalens.guard import Decisions, Guard
from credalens.prediction import CredalPrediction
from credalens.serve.protocol.errors import RequestError


@dataclass(frozen=True, eq=False)
class Predicted:
    """A prediction, and what the guard decided about it where there is one."""

    prediction: CredalPrediction
    decisions: Decisions | None

    def predicted_classes(self) -> Any:
        """The classes that the guard decides about, without one those of the intersection probability."""
        return self.prediction.predict() if self.decisions is None else self.decisions.prediction


@dataclass(frozen=True)
class Output:
    """One output: rows, or rows x classes.

    :ivar datatype: of the protocol; None for the precision of the prediction.
    """

    name: str
    compute: Callable[[Predicted], Any]
    datatype: str | None = None
    per_class: bool = False

    def values(self, predicted: Predicted, /) -> NDArray:
        """The values as a NumPy array."""
        array = to_numpy(self.compute(predicted))[0]
        return array.astype(np.int64, copy=False) if self.datatype == "INT64" else array


def _score(name: str) -> Output:
    score = SCORES[name]
    return Output(name, lambda x: score.compute(x.prediction), "INT64" if score.unit == "classes" else None)


ALWAYS: Final = (
    Output("prediction", lambda x: x.predicted_classes(), "INT64"),
    *(Output(name, attrgetter(f"prediction.{name}"), per_class=True) for name in ("probability", "lower", "upper")),
    Output("mean", attrgetter("prediction.mean"), per_class=True),
    Output("set", lambda x: x.prediction.predict_set(), "BOOL", per_class=True),
    *(_score(name) for name in SCORES),
)
GUARDED: Final = (
    Output("decision", attrgetter("decisions.decision"), "BYTES"),
    Output("p_value", attrgetter("decisions.p_value"), "FP64"),
    Output("reason", attrgetter("decisions.reason"), "BYTES"),
)
GUARD_SET: Final = Output("guard_set", attrgetter("decisions.set"), "BOOL", per_class=True)
DEFAULT: Final = (
    "prediction", "probability", "lower", "upper", "total", "aleatoric", "epistemic", "decision", "p_value", "reason",
)  # fmt: skip


def available_outputs(guard: Guard | None, /, *, has_members: bool) -> dict[str, Output]:
    """The outputs by name. Some scores need the members, which not every model keeps."""
    guarded = () if guard is None else (*GUARDED, GUARD_SET) if guard.sets else GUARDED
    possible = (
        output for output in ALWAYS if has_members or output.name not in SCORES or not SCORES[output.name].needs_members
    )
    return {output.name: output for output in (*possible, *guarded)}


def default_outputs(available: Iterable[str], /) -> tuple[str, ...]:
    """What a request gets that names no output."""
    return tuple(name for name in DEFAULT if name in available)


def check_output(name: str, available: Iterable[str], /) -> None:
    """Refuse a name that is no output of this model."""
    if name not in available:
        raise RequestError(f"there is no output {name!r}; the outputs are {', '.join(available)}.")
