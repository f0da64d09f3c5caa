"""wrap(): member predictions in, a credal prediction out. The one call most users need."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import NUMPY, Origin, to_numpy
from credalens.checks import (
    Members,
    check_base,
    check_not_empty_summary,
    raise_bad_rows,
    raise_without_members,
    read_logits,
    read_members,
    row_tolerance,
)
from credalens.core.batches import for_each_chunk
from credalens.core.classical import ClassicalUncertainty, decompose_members, from_bits
from credalens.core.decisions import credal_decision
from credalens.core.entropy import MAX_NODES, TOLERANCE, epistemic_part, phi_pair, shannon_entropy
from credalens.core.hartley import generalized_hartley
from credalens.core.hull import ConvexHull
from credalens.core.intervals import ProbabilityIntervals
from credalens.core.members import MemberSummary

__all__ = ["CredalPrediction", "from_summary", "wrap", "wrap_logits"]


@dataclass(frozen=True, eq=False, repr=False)
class CredalPrediction:
    """What the members agree on and what they do not, in the caller's kind of array.

    - ``lower``, ``upper`` (*batch, classes): the lowest and highest probability any member gives.
    - ``probability`` (*batch, classes): the intersection probability, the point prediction of the credal set.
    - ``mean`` (*batch, classes): the averaged probability, for comparison.
    - ``total``, ``aleatoric``, ``epistemic`` (*batch): highest entropy, lowest entropy, their difference.
    - ``aleatoric_bound`` (*batch): a certified lower bound of the lowest entropy; equal to ``aleatoric`` up to 1e-9 unless
      the work budget ended first.
    - ``classical``: total, aleatoric and epistemic uncertainty of the averaged prediction, computed when first asked for.
    - ``hartley`` (*batch): the generalized Hartley measure, computed when first asked for.
    """

    lower: Any
    upper: Any
    probability: Any
    mean: Any
    total: Any
    aleatoric: Any
    epistemic: Any
    aleatoric_bound: Any
    base: float
    n_members: int
    _members: Members | None = field(default=None)
    _classical: Any = field(default=None)

    @property
    def intervals(self) -> ProbabilityIntervals:
        """Lower and upper bounds as one object with its own methods."""
        return ProbabilityIntervals(self.lower, self.upper)

    @cached_property
    def classical(self) -> ClassicalUncertainty:
        """Entropy of the mean, mean entropy of the members, and their difference."""
        if self._members is None:
            return self._classical
        return decompose_members(self._members, base=self.base)

    @cached_property
    def hartley(self) -> Any:
        """Generalized Hartley measure of the intervals."""
        return generalized_hartley(self.lower, self.upper, base=self.base)

    @cached_property
    def hull(self) -> ConvexHull:
        """The convex hull of the members, a smaller credal set. Needs the members, which a summary does not keep."""
        if self._members is None:
            raise_without_members()
        members = self._members
        probs = members.array.reshape((len(members.array), *members.batch, members.array.shape[-1]))
        return ConvexHull(members.origin.restore(probs))

    def predict(self) -> Any:
        """The class with the highest intersection probability, (*batch)."""
        return self.probability.argmax(-1)

    def predict_set(self, rule: str = "maximality") -> Any:
        """The classes that remain possible under ``rule`` (see ``credal_decision``), a mask (*batch, classes)."""
        return credal_decision(self.lower, self.upper, rule)

    def __repr__(self) -> str:
        batch, classes = tuple(self.lower.shape[:-1]), self.lower.shape[-1]
        return f"CredalPrediction(members={self.n_members}, batch={batch}, classes={classes}, base={self.base:g})"


def wrap(
    probs: Any,
    *,
    member_axis: int = 0,
    base: float = 2,
    max_nodes: int = MAX_NODES,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> CredalPrediction:
    """Turn the probabilities of N members into a credal prediction.

    ``probs`` is (members, *batch, classes); ``member_axis`` says otherwise. Rows must sum to one. Results come back in the
    same array library, device and batch shape, in float64 for float64 input and float32 for narrower; everything is
    computed in float64. ``probs`` is not copied: the lazy ``classical`` and ``hull`` read it again.

    >>> prediction = wrap([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
    >>> prediction.probability.round(4), round(float(prediction.epistemic), 3)
    (array([0.325 , 0.2875, 0.3875]), 0.428)
    """
    members = read_members(probs, member_axis=member_axis)
    return _from_members(members, "probs", base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)


def wrap_logits(
    logits: Any,
    *,
    member_axis: int = 0,
    base: float = 2,
    max_nodes: int = MAX_NODES,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> CredalPrediction:
    """Turn the logits of N members into a credal prediction: a softmax in float64 over the last axis, then ``wrap``."""
    members = read_logits(logits, member_axis=member_axis)
    return _from_members(members, "logits", base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)


def from_summary(summary: MemberSummary, /, *, base: float = 2, threads: int | None = None) -> CredalPrediction:
    """The credal prediction of a summary's members."""
    check_not_empty_summary(summary.count)
    origin = summary.origin or NUMPY
    lower, upper, total = (to_numpy(x)[0] for x in (summary.lower, summary.upper, summary.sum_probability))
    classes, batch = lower.shape[-1], lower.shape[:-1]
    low, high = (np.ascontiguousarray(x, np.float64).reshape(-1, classes) for x in (lower, upper))
    mean = (total / summary.count).reshape(-1, classes)
    results = _Results(len(low), classes, origin, base)

    def work(start: int, stop: int) -> None:
        results.solve(start, stop, low[start:stop], high[start:stop], mean[start:stop], MAX_NODES, TOLERANCE)

    for_each_chunk(work, len(low), classes, threads=threads)
    entropy = np.asarray(to_numpy(summary.sum_entropy)[0], np.float64).reshape(-1) / summary.count
    restore = Members(mean, batch, origin).restore
    return results.prediction(batch, summary.count, None, from_bits(shannon_entropy(mean), entropy, restore, base=base))


def _from_members(
    members: Members, name: str, *, base: float, max_nodes: int, tolerance: float, threads: int | None
) -> CredalPrediction:
    from credalens.core.kernels.bounds import bounds_rows

    count, rows, classes = members.array.shape
    results = _Results(rows, classes, members.origin, base)
    allowed = row_tolerance(members.origin.dtype)

    def work(start: int, stop: int) -> None:
        low, high, mean = np.empty((3, stop - start, classes))
        if not bounds_rows(*members.rows(start, stop), allowed, low, high, mean):
            raise_bad_rows(members, name)
        results.solve(start, stop, low, high, mean, max_nodes, tolerance)

    for_each_chunk(work, rows, classes, threads=threads)
    return results.prediction(members.batch, count, members, None)


class _Results:
    """The output arrays, in the caller's precision, filled chunk by chunk."""

    def __init__(self, rows: int, classes: int, origin: Origin, base: float) -> None:
        self.base = check_base(base)
        self.origin = origin
        dtype = origin.result_dtype
        self.lower, self.upper, self.probability, self.mean = (np.empty((rows, classes), dtype) for _ in range(4))
        self.total, self.aleatoric, self.epistemic, self.bound = (np.empty(rows, dtype) for _ in range(4))

    def solve(
        self, start: int, stop: int, low: NDArray, high: NDArray, mean: NDArray, max_nodes: int, tolerance: float
    ) -> None:
        """Everything that follows from the bounds of rows start..stop."""
        from credalens.core.kernels.bounds import intersection_rows
        from credalens.core.kernels.lower import lower_entropy_rows
        from credalens.core.kernels.upper import upper_entropy_rows

        phi_low, phi_high = phi_pair(low, high)
        p = np.empty_like(low)
        highest, lowest, bound = np.empty((3, stop - start))
        lower_entropy_rows(low, high, phi_low, phi_high, tolerance, max_nodes, lowest, bound, p)
        upper_entropy_rows(low, high, phi_low, phi_high, highest, p[:0])
        intersection_rows(low, high, p)
        scale = 1.0 / math.log2(self.base)
        rows = slice(start, stop)
        self.lower[rows], self.upper[rows], self.probability[rows], self.mean[rows] = low, high, p, mean
        self.total[rows], self.aleatoric[rows], self.bound[rows] = (
            highest * scale,
            lowest * scale + 0.0,
            bound * scale + 0.0,
        )
        self.epistemic[rows] = epistemic_part(highest, lowest) * scale

    def prediction(
        self, batch: tuple[int, ...], count: int, members: Members | None, classical: Any
    ) -> CredalPrediction:
        """Hand the arrays back in the caller's shape and library."""
        wide = (self.lower, self.upper, self.probability, self.mean)
        narrow = (self.total, self.aleatoric, self.epistemic, self.bound)
        arrays = [x.reshape((*batch, x.shape[-1])) for x in wide] + [x.reshape(batch) for x in narrow]
        lower, upper, probability, mean, total, aleatoric, epistemic, bound = map(self.origin.restore, arrays)
        return CredalPrediction(
            lower,
            upper,
            probability,
            mean,
            total,
            aleatoric,
            epistemic,
            bound,
            base=self.base,
            n_members=count,
            _members=members,
            _classical=classical,
        )
