"""CoveringIntervals: intervals widened until they hold the whole label distribution of an input with a promised probability."""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import as_array
from credalens.checks.bad_values import refuse_values
from credalens.checks.intervals import trusted_intervals
from credalens.checks.options import check_fraction
from credalens.core.intervals import ProbabilityIntervals, tightened
from credalens.guard.prediction_kind import PredictionKind
from credalens.guard.quantile import conformal_quantile, least_samples
from credalens.guard.saved import SavedFormat
from credalens.prediction import CredalPrediction

SAVED: Final = SavedFormat("covering-intervals")
ROUNDING: Final = 4 * float(np.finfo(np.float32).eps)  # what bounds may lose in float32; it only adds coverage


@dataclass(frozen=True)
class CoveringIntervals:
    r"""Intervals :math:`[l - q, u + q]` that hold the distribution h of people's labels, all classes at once.

    q is the conformal quantile of the largest violation :math:`\max_k \max(l_k - h_k, h_k - u_k, 0)` on calibration inputs.
    For inputs exchangeable with these :math:`P(l - q \le h \le u + q) \ge 1 - \alpha`. The intervals are clipped to [0, 1] and
    tightened, which loses no distribution.

    :ivar margin: q.
    :ivar raw_coverage: the share of calibration inputs that the intervals hold as they are.
    """

    alpha: float
    margin: float
    raw_coverage: float
    fitted_on: PredictionKind
    n_samples: int

    @classmethod
    def fit(cls, prediction: CredalPrediction, answers: Any, *, alpha: float = 0.1) -> CoveringIntervals:
        """Learn from inputs that several people labelled; ``answers`` (*batch, classes) counts or shares of their answers.

        >>> from credalens import wrap
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.dirichlet([1, 1, 1], 200)
        >>> prediction = wrap(np.stack([truth + 0.1 * (rng.dirichlet([1, 1, 1], 200) - truth) for _ in range(3)]))
        >>> covering = CoveringIntervals.fit(prediction, rng.multinomial(20, truth), alpha=0.1)
        >>> round(covering.raw_coverage, 2), round(covering.margin, 2)
        (0.03, 0.18)
        """
        kind, rate = PredictionKind.of(prediction), check_fraction(alpha, "alpha")
        violations = largest_violations(prediction, answers)
        least = least_samples(rate)
        if len(violations) < least:
            warnings.warn(
                f"there are {len(violations)} samples, fewer than the {least} that a coverage of {1 - rate:g} needs: every "
                "interval becomes [0, 1].",
                stacklevel=2,
            )
        margin, raw = min(1.0, conformal_quantile(violations, rate)), float((violations == 0).mean())
        return cls(rate, margin, raw, kind, len(violations))

    def inflate(self, prediction: CredalPrediction, /) -> ProbabilityIntervals:
        """The intervals of a prediction, widened by the margin, clipped and tightened."""
        self.fitted_on.check(prediction)
        intervals, margin = trusted_intervals(prediction.lower, prediction.upper), self.margin + ROUNDING
        low, high = np.maximum(intervals.lower - margin, 0), np.minimum(intervals.upper + margin, 1)
        return ProbabilityIntervals._trusted(*map(intervals.restore, tightened(low, high)))

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write as JSON, whole or not at all."""
        SAVED.write(path, asdict(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> CoveringIntervals:
        """Read what :meth:`save` wrote."""
        return SAVED.read(path, lambda fields: cls(**{**fields, "fitted_on": PredictionKind(**fields["fitted_on"])}))


def largest_violations(prediction: CredalPrediction, answers: Any, /) -> NDArray[np.float64]:
    """By how much each label distribution leaves its intervals at the worst class, (rows,); 0 where it lies inside."""
    intervals, h = trusted_intervals(prediction.lower, prediction.upper), _distributions(answers, prediction)
    return np.maximum(np.maximum(intervals.lower - h, h - intervals.upper), 0).max(axis=1)


def _distributions(answers: Any, prediction: CredalPrediction) -> NDArray[np.float64]:
    counts = as_array(answers, "answers")[0].astype(np.float64)
    if counts.shape != tuple(prediction.lower.shape):
        raise ValueError(
            f"answers must have shape {tuple(prediction.lower.shape)}, counts or shares for each class; got {counts.shape}."
        )
    bad = ~((counts >= 0) & (counts < np.inf))
    refuse_values(bad, counts, "answers", "negative or not finite", "Count how many people chose each class.")
    sums = counts.sum(axis=-1)
    refuse_values(sums == 0, sums, "sums of answers", "0", "Drop inputs that nobody labelled.")
    return (counts / sums[..., None]).reshape(-1, counts.shape[-1])
