"""DriftAlarm: watches the scores of a stream and says when they are no longer like those of the calibration data."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import read_sample_scores, read_scores
from credalens.checks.options import check_choice, check_count, check_fraction, check_tolerance, count_text
from credalens.guard.rounding import DIGITS
from credalens.guard.saved import SavedFormat, number, numbers
from credalens.guard.stream import FixedReference, RankedScores, Wealth

LARGEST: Final = math.log(np.finfo(np.float64).max)
METHODS: Final = {"online": RankedScores, "fixed": FixedReference}
PLAIN: Final = ("method", "alpha", "tolerance", "n_calibration", "n_seen", "alarm_at", "log_value")
COARSE: Final = 1000  # tolerances over which calibration scores are spread at least, unless they are not meant for it


class DriftAlarm:
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
        self.tolerance = _check_tolerance(tolerance, scores)
        self.alpha = check_fraction(alpha, "alpha")
        self.method: str = check_choice(method, METHODS, "method")
        self.n_calibration, self.n_seen, self.log_value = len(scores), 0, 0.0
        self.alarm_at: int | None = None
        self._generator = np.random.default_rng(check_count(seed, "seed", least=0))
        self._wealth = Wealth.start()
        self._reference = _reference(scores, method, self.alpha, self.tolerance)

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
        self._wealth, values = self._wealth.after(self._p_values(batch, most))
        reached = values >= math.log(self.bound)
        if self.alarm_at is None and reached.any():
            self.alarm_at = self.n_seen + int(reached.argmax()) + 1
        self.n_seen, self.log_value = self._wealth.count, float(values[-1])
        return values

    def _p_values(self, scores: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
        if isinstance(self._reference, FixedReference):
            return replace(self._reference, tolerance=tolerance).p_values(scores)
        return self._reference.p_values(scores, 1 - self._generator.random(len(scores)))

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write as JSON, whole or not at all; after :meth:`load` the alarm continues with the same bits."""
        state = {name: getattr(self, name) for name in PLAIN}
        reference = {"reference": self._reference.arrays(), "generator": self._generator.bit_generator.state}
        SAVED.write(path, state | {"growth": self._wealth.growth, "stakes": self._wealth.stakes} | reference)

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> DriftAlarm:
        """Read what :meth:`save` wrote."""
        return SAVED.read(path, cls._restored)

    @classmethod
    def _restored(cls, fields: dict[str, Any]) -> DriftAlarm:
        alarm = object.__new__(cls)
        vars(alarm).update({name: fields[name] for name in PLAIN}, log_value=number(fields["log_value"]))
        arrays = {name: numbers(values) for name, values in fields["reference"].items()}
        alarm._reference = METHODS[check_choice(alarm.method, METHODS, "method")](**arrays, tolerance=alarm.tolerance)
        alarm._wealth = Wealth(alarm.n_seen, numbers(fields["growth"]), numbers(fields["stakes"]))
        alarm._generator = np.random.default_rng()
        alarm._generator.bit_generator.state = fields["generator"]
        return alarm


def _from_version_1(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an alarm that compared scores to the last digit."""
    reference = fields["reference"]
    if fields["method"] == "online":
        reference = {"places": RankedScores.of(numbers(reference["scores"]), DIGITS).arrays()["places"].tolist()}
    return {**fields, "tolerance": DIGITS, "reference": reference}


SAVED: Final = SavedFormat("drift-alarm", 2, {1: _from_version_1})


def _check_tolerance(tolerance: float, scores: NDArray[np.float64]) -> float:
    checked = check_tolerance(tolerance)
    if checked == 0:
        raise ValueError("tolerance must be above 0; rounding makes ties of equal scores, and breaks them.")
    finite = scores[np.isfinite(scores)]
    spread = float(np.ptp(finite)) if finite.size else 0.0
    if 0 < spread < COARSE * checked:
        warnings.warn(
            f"the calibration scores differ by {spread:.3g} at most, and differences of {checked:.3g} count as rounding: give "
            "tolerance=, what rounding may change of a score.",
            stacklevel=4,
        )
    return checked


def _reference(
    scores: NDArray[np.float64], method: str, alpha: float, tolerance: float
) -> RankedScores | FixedReference:
    if method == "online":
        return RankedScores.of(scores, tolerance)
    if (least := FixedReference.least(alpha / 2)) > len(scores):
        raise ValueError(
            f"{count_text(len(scores), 'calibration score')}: too few for a fixed reference at alpha = {alpha:g}, no score "
            f"could raise the value. At least {least} are needed; pass more, or use method='online'."
        )
    return FixedReference.of(scores, alpha / 2, tolerance)
