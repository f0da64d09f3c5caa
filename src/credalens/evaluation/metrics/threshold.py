"""Where to set the alarm: a threshold with a known false-alarm rate, to keep and use again."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from credalens.checks.labels import read_sample_scores, read_scores
from credalens.checks.options import check_base, check_choice, check_count, check_fraction, check_same_base, count_text
from credalens.core.scores import SCORES
from credalens.evaluation.results import Result
from credalens.guard.binomial import least_samples, most_hits
from credalens.prediction import CredalPrediction
from credalens.storage import atomic_file
from credalens.storage.formats.files import restoring

FORMAT = "credalens-threshold-1"


@dataclass(frozen=True)
class Threshold(Result):
    """Flags every score above ``value``: made by ``select_threshold``, used by ``flags``.

    :ivar false_alarm_rate: the rate that was wanted.
    :ivar achieved_rate: share of the ID samples it was chosen on that it flags, at most the wanted rate.
    :ivar n_id: how many samples it was chosen on.
    :ivar guarantee: "sample" or "new", see :func:`select_threshold`.
    :ivar name: which score it is for, such as "epistemic"; a threshold means nothing on another score.
    :ivar base: in which base that score is measured; a prediction is compared only where it is known.
    """

    value: float
    false_alarm_rate: float
    achieved_rate: float
    n_id: int
    guarantee: str
    name: str
    base: float | None = None

    def flags(self, x: Any, /) -> NDArray[np.bool_]:
        """True where a score lies above the threshold.

        ``x`` is a ``CredalPrediction``, whose score is computed here and whose base is checked, or an array of scores.
        """
        return read_scores(self._score_of(x) if isinstance(x, CredalPrediction) else x, "scores") > self.value

    def _score_of(self, prediction: CredalPrediction) -> Any:
        if self.name not in SCORES:
            raise ValueError(
                f"this threshold is for {self.name or 'an unnamed score'!r}, which is not a score of the catalogue "
                f"({', '.join(SCORES)}); pass the scores themselves."
            )
        if SCORES[self.name].unit == "information":
            self._check_base(prediction)
        return prediction.score(self.name)

    def _check_base(self, prediction: CredalPrediction) -> None:
        if self.base is None:
            raise ValueError(
                "this threshold does not know the base of its scores; pass it, select_threshold(..., base=2) for bits, or pass "
                "the scores themselves."
            )
        check_same_base(prediction.base, self.base, "this threshold is for scores")

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write as JSON; the file appears whole or not at all."""
        value = self.value if math.isfinite(self.value) else str(self.value)
        text = json.dumps({"format": FORMAT, **self.as_dict(), "value": value}, indent=2, allow_nan=False)
        with atomic_file(path) as file:
            file.write(text.encode() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Threshold:
        """Read what :meth:`save` wrote; the value comes back bit for bit."""
        with restoring(path, f"threshold ({FORMAT})"):
            stored = json.loads(Path(path).read_text(encoding="utf-8"))
            if stored["format"] != FORMAT:
                raise ValueError(f"format is {stored['format']!r}")
            return _restored(stored)


def select_threshold(
    id_scores: Any,
    /,
    *,
    false_alarm_rate: float = 0.05,
    guarantee: Literal["sample", "new"] = "sample",
    name: str = "",
    base: float | None = None,
) -> Threshold:
    r"""The lowest threshold whose false-alarm rate on ID data is at most the wanted one, safe at ties.

    An ID score serves as the threshold and only scores strictly above it are flagged:

    .. math:: t = \min\{s \in \mathrm{ID} : |\{i : s_i > s\}| \le r \, n\}

    With ``guarantee="sample"`` that bounds the rate on ``id_scores`` themselves. With ``guarantee="new"`` one
    more, unseen sample is counted as an alarm, :math:`|\{s_i > s\}| + 1 \le r (n + 1)`, which bounds the
    probability that a new sample from the same source is flagged (split conformal prediction); use data the
    model was not trained on.

    >>> threshold = select_threshold([0.1, 0.2, 0.2, 0.4, 0.7], false_alarm_rate=0.2)
    >>> threshold.value, threshold.achieved_rate, threshold.flags([0.4, 0.41]).tolist()
    (0.4, 0.2, [False, True])
    """
    check_choice(guarantee, ("sample", "new"), "guarantee")
    ordered = np.sort(read_sample_scores(id_scores, "id_scores"))
    rate, n, unseen = check_fraction(false_alarm_rate, "false_alarm_rate"), len(ordered), int(guarantee == "new")
    alarms = most_hits(rate, n + unseen) - unseen
    if alarms < 0:
        raise ValueError(
            f"{count_text(n, 'sample')} cannot promise a false-alarm rate of {rate:g} on new data; "
            f"at least {least_samples(rate)} are needed. Pass more, or guarantee='sample'."
        )
    value = float(ordered[n - 1 - alarms])
    return Threshold(value, rate, float((ordered > value).mean()), n, guarantee, name, base)


def threshold_for_rate(id_scores: NDArray, rate: float, /, *, name: str = "", base: float | None = None) -> Threshold:
    """A threshold whose promise holds for new ID inputs, or, where there are too few to promise, for these."""
    guarantee: Literal["sample", "new"] = "new" if len(id_scores) >= least_samples(rate) else "sample"
    return select_threshold(id_scores, false_alarm_rate=rate, guarantee=guarantee, name=name, base=base)


def _restored(stored: dict[str, Any]) -> Threshold:
    return Threshold(
        value=float(read_scores(float(stored["value"]), "value")),
        false_alarm_rate=check_fraction(stored["false_alarm_rate"], "false_alarm_rate"),
        achieved_rate=float(stored["achieved_rate"]),
        n_id=check_count(stored["n_id"], "n_id"),
        guarantee=str(stored["guarantee"]),
        name=str(stored["name"]),
        base=None if stored.get("base") is None else check_base(stored["base"]),
    )
