"""wrap(): member predictions in, a credal prediction out. The one call most users need."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from credalens.arrays import NUMPY, ArrayKind, gpu_tensor, to_numpy, top_class
from credalens.checks.bad_rows import raise_bad_rows
from credalens.checks.member_array import (
    MemberArray,
    check_not_empty_summary,
    in_common_precision,
    raise_without_members,
    read_logits,
    read_members,
)
from credalens.checks.options import check_base, check_max_nodes, check_tolerance
from credalens.core.batches import for_each_chunk
from credalens.core.classical import ClassicalUncertainty, decompose_members, from_bits
from credalens.core.decisions import credal_decision
from credalens.core.decomposition import Decomposition
from credalens.core.entropy import MAX_NODES, TOLERANCE, shannon_entropy
from credalens.core.hartley import generalized_hartley
from credalens.core.hull import ConvexHull
from credalens.core.intervals import ProbabilityIntervals
from credalens.core.members import MemberSummary

if TYPE_CHECKING:
    from credalens.cuda import GpuMembers

__all__ = ["CredalPrediction", "from_summary", "wrap", "wrap_logits"]


@dataclass(frozen=True, eq=False, repr=False)
class CredalPrediction:
    """What the members agree on and what they do not, in the caller's kind of array.

    - ``lower``, ``upper`` (*batch, classes): the lowest and highest probability any member gives.
    - ``probability`` (*batch, classes): the intersection probability, the point prediction of the credal set.
    - ``mean`` (*batch, classes): the averaged probability, for comparison.
    - ``total``, ``aleatoric``, ``epistemic`` (*batch): highest entropy, lowest entropy, their difference.
    - ``aleatoric_bound`` (*batch): a certified lower bound of the lowest entropy, rounded as all results to their dtype;
      equal to ``aleatoric`` up to 1e-9 unless the work budget ended first.
    - ``classical``: total, aleatoric and epistemic uncertainty of the averaged prediction, computed when first asked for.
    - ``hartley`` (*batch): the generalized Hartley measure, computed when first asked for.

    Entropies have all digits of the results' dtype, but for CUDA tensors of more than 32 classes in less than float64: there
    they are good to some 2e-6 bits.
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
    _members: MemberArray | GpuMembers | None = field(default=None)
    _classical: Any = field(default=None)
    _threads: int | None = field(default=None)  # of what is computed when first asked for

    @property
    def intervals(self) -> ProbabilityIntervals:
        """Lower and upper bounds as one object with its own methods."""
        return ProbabilityIntervals(self.lower, self.upper)

    @cached_property
    def classical(self) -> ClassicalUncertainty:
        """Entropy of the mean, mean entropy of the members, and their difference."""
        if self._members is None:
            return self._classical
        if isinstance(self._members, MemberArray):
            return decompose_members(self._members.read_again(), base=self.base, threads=self._threads)
        return self._members.classical(base=self.base)

    @cached_property
    def hartley(self) -> Any:
        """Generalized Hartley measure of the intervals."""
        return generalized_hartley(self.lower, self.upper, base=self.base, threads=self._threads)

    @cached_property
    def hull(self) -> ConvexHull:
        """The convex hull of the members, a smaller credal set. Needs the members, which a summary does not keep."""
        if self._members is None:
            raise_without_members()
        return ConvexHull._of_members(self._members.read().read_again())

    def predict(self) -> Any:
        """The class with the highest intersection probability, (*batch)."""
        return top_class(self.probability)

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
    computed in float64. ``probs`` is not copied: the lazy ``classical`` and ``hull`` read it again. ``max_nodes`` and
    ``tolerance`` are the budget of the lowest entropy (see ``lower_entropy``).

    >>> prediction = wrap([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
    >>> prediction.probability.round(4), round(float(prediction.epistemic), 3)
    (array([0.325 , 0.2875, 0.3875]), 0.428)
    """
    max_nodes, tolerance = check_max_nodes(max_nodes), check_tolerance(tolerance)
    probs = in_common_precision(probs)
    if (found := _on_gpu(probs, "probs", member_axis, base, max_nodes, tolerance)) is not None:
        return found
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
    max_nodes, tolerance = check_max_nodes(max_nodes), check_tolerance(tolerance)
    if (found := _on_gpu(logits, "logits", member_axis, base, max_nodes, tolerance)) is not None:
        return found
    members = read_logits(logits, member_axis=member_axis)
    return _from_members(members, "logits", base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)


def _on_gpu(
    values: Any, kind: str, member_axis: int, base: float, max_nodes: int, tolerance: float
) -> CredalPrediction | None:
    """The credal prediction of CUDA tensors, without leaving the device; None where the CPU path must do.

    That is where Triton is missing, and where something is wrong with the values: the CPU path words the error.
    """
    if (tensor := gpu_tensor(values)) is None:
        return None
    from credalens.cuda import gpu_members

    members = gpu_members(tensor, kind, member_axis=member_axis)
    base = check_base(base)
    rows = members and members.describe(base=base, max_nodes=max_nodes, tolerance=tolerance)
    if not (members and rows):
        return None
    return CredalPrediction(**vars(rows), base=base, n_members=len(members.tensor), _members=members)


def from_summary(
    summary: MemberSummary,
    /,
    *,
    base: float = 2,
    max_nodes: int = MAX_NODES,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> CredalPrediction:
    """The credal prediction of a summary's members."""
    max_nodes, tolerance = check_max_nodes(max_nodes), check_tolerance(tolerance)
    check_not_empty_summary(summary.count)
    array_kind = summary.array_kind or NUMPY
    lower, upper, total = (to_numpy(x)[0] for x in (summary.lower, summary.upper, summary.sum_probability))
    classes, batch = lower.shape[-1], lower.shape[:-1]
    low, high = (np.ascontiguousarray(x, np.float64).reshape(-1, classes) for x in (lower, upper))
    mean = (total / summary.count).reshape(-1, classes)
    found = Decomposition(len(low), classes, array_kind.result_dtype, base=base)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        found.solve_bounds(low[rows], high[rows], mean[rows], start, stop, max_nodes=max_nodes, tolerance=tolerance)

    for_each_chunk(work, len(low), classes, threads=threads)
    entropy = np.asarray(to_numpy(summary.sum_entropy)[0], np.float64).reshape(-1) / summary.count
    restore = MemberArray(mean, batch, array_kind).restore
    classical = from_bits(shannon_entropy(mean), entropy, restore, base=base)
    return _handed_back(found, array_kind, batch, summary.count, base, _classical=classical, _threads=threads)


def _from_members(
    members: MemberArray, name: str, *, base: float, max_nodes: int, tolerance: float, threads: int | None
) -> CredalPrediction:
    count, rows, classes = members.array.shape
    found = Decomposition(rows, classes, members.array_kind.result_dtype, base=base)

    def work(start: int, stop: int) -> None:
        if not found.solve_members(members, start, stop, max_nodes=max_nodes, tolerance=tolerance):
            raise_bad_rows(members, name)

    for_each_chunk(work, rows, classes, threads=threads)
    return _handed_back(found, members.array_kind, members.batch, count, base, _members=members, _threads=threads)


def _handed_back(
    found: Decomposition, array_kind: ArrayKind, batch: tuple[int, ...], count: int, base: float, **lazy: Any
) -> CredalPrediction:
    """The arrays in the caller's shape and library."""
    wide = (found.lower, found.upper, found.probability, found.mean)
    narrow = (found.total, found.aleatoric, found.epistemic, found.bound)
    arrays = [x.reshape((*batch, x.shape[-1])) for x in wide] + [x.reshape(batch) for x in narrow]
    lower, upper, p, mean, total, aleatoric, epistemic, bound = map(array_kind.restore, arrays)
    return CredalPrediction(
        lower, upper, p, mean, total, aleatoric, epistemic, bound, float(base), n_members=count, **lazy
    )
