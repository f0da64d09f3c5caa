"""CoveringIntervals: intervals widened until they hold the whole label distribution of an input with a promised probability."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.arrays import as_array, refuse_values
from credalens.checks.intervals import trusted_intervals
from credalens.checks.options import check_fraction, count_text
from credalens.core.intervals import ProbabilityIntervals, tightened
from credalens.guard.binomial import conformal_quantile, least_samples
from credalens.guard.signature import Signature
from credalens.prediction import CredalPrediction
from credalens.storage.saved import Saved, SavedFormat

LEAST: Final = 0.1  # of an adaptive scale
MOST: Final = 1 / LEAST  # a margin that makes every interval [0, 1]
ROUNDING: Final = 4 * float(np.finfo(np.float32).eps)  # what bounds may lose in float32; it only adds coverage


@dataclass(frozen=True)
class CoveringIntervals(Saved):
    r"""Intervals :math:`[l - q s, u + q s]` that hold the distribution h of people's labels, all classes at once.

    Use them if several people labelled each calibration input; :meth:`fit` makes them.

    q is the conformal quantile on calibration inputs of the largest violation
    :math:`\max_k \max(l_k - h_k, h_k - u_k, 0) / s_k`. For inputs exchangeable with these
    :math:`P(l - q s \le h \le u + q s) \ge 1 - \alpha`. The intervals are clipped to [0, 1] and tightened, which loses no
    distribution. s is 1, or with ``adaptive`` :math:`s_k = \sqrt{p^*_k (1 - p^*_k)} + 0.1`: shares near 0 and 1 vary less,
    hence intervals are narrower on average.

    :ivar margin: the quantile q.
    :ivar raw_coverage: the share of calibration inputs that the intervals hold as they are.
    """

    FORMAT = SavedFormat("covering-intervals", 3, {1: dict, 2: dict})

    alpha: float
    adaptive: bool
    margin: float
    raw_coverage: float
    fitted_on: Signature
    n_samples: int

    @classmethod
    def fit(
        cls, prediction: CredalPrediction, answers: Any, *, alpha: float = 0.1, adaptive: bool = False
    ) -> CoveringIntervals:
        """Learn from inputs that several people labelled; ``answers`` (*batch, classes) counts or shares of their answers.

        >>> import numpy as np
        >>> from credalens import wrap
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.dirichlet([1, 1, 1], 200)
        >>> prediction = wrap(np.stack([truth + 0.1 * (rng.dirichlet([1, 1, 1], 200) - truth) for _ in range(3)]))
        >>> covering = CoveringIntervals.fit(prediction, rng.multinomial(20, truth), alpha=0.1)
        >>> round(covering.raw_coverage, 2), round(covering.margin, 2)
        (0.03, 0.18)
        """
        signature, rate = Signature.of(prediction), check_fraction(alpha, "alpha")
        violations = largest_violations(prediction, answers, adaptive=bool(adaptive))
        least = least_samples(rate)
        if len(violations) < least:
            warnings.warn(
                f"got {count_text(len(violations), 'sample')}, fewer than the {least} that a coverage of {1 - rate:g} needs: "
                "every interval becomes [0, 1].",
                stacklevel=2,
            )
        margin, raw = min(MOST, conformal_quantile(violations, rate)), float((violations == 0).mean())
        return cls(rate, bool(adaptive), margin, raw, signature, len(violations))

    def inflate(self, prediction: CredalPrediction, /) -> ProbabilityIntervals:
        """The intervals of a prediction, widened by the margin, clipped and tightened."""
        self.fitted_on.check(Signature.of(prediction))
        intervals = trusted_intervals(prediction.lower, prediction.upper)
        margin = self.margin * _scale(prediction, self.adaptive) + ROUNDING
        low, high = np.maximum(intervals.lower - margin, 0), np.minimum(intervals.upper + margin, 1)
        return ProbabilityIntervals._trusted(*map(intervals.restore, tightened(low, high)))

    def saved_fields(self) -> dict[str, Any]:
        """The fields of the file."""
        return {**vars(self), "fitted_on": self.fitted_on.without_base()}

    @classmethod
    def restored(cls, fields: dict[str, Any], /) -> CoveringIntervals:
        """The intervals from the fields of a file."""
        return cls(**{**fields, "fitted_on": Signature.restored(fields["fitted_on"])})


def largest_violations(prediction: CredalPrediction, answers: Any, /, *, adaptive: bool = False) -> NDArray[np.float64]:
    """By how much each label distribution leaves its intervals at the worst class, (rows,); 0 where it lies inside."""
    counts = as_array(answers, "answers")[0].astype(np.float64)
    if counts.shape != tuple(prediction.lower.shape):
        raise ValueError(
            f"answers must have shape {tuple(prediction.lower.shape)}, counts or shares for each class; got {counts.shape}."
        )
    bad = ~((counts >= 0) & (counts < np.inf))
    refuse_values(bad, counts, "answers", "negative or not finite", "Count how many people chose each class.")
    sums = counts.sum(axis=-1)
    refuse_values(sums == 0, sums, "sums of answers", "0", "Drop inputs that nobody labelled.")
    intervals = trusted_intervals(prediction.lower, prediction.upper)
    h = (counts / sums[..., None]).reshape(intervals.lower.shape)
    violations = np.maximum(np.maximum(intervals.lower - h, h - intervals.upper), 0)
    return (violations / _scale(prediction, adaptive)).max(axis=1)


def _scale(prediction: CredalPrediction, adaptive: bool) -> NDArray[np.float64]:
    p = to_numpy(prediction.probability)[0].astype(np.float64).reshape(-1, prediction.lower.shape[-1])
    return np.sqrt(p * np.maximum(1 - p, 0)) + LEAST if adaptive else np.ones_like(p)
