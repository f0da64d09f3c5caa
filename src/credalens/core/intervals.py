"""Probability intervals: from members, from users, tightened, reduced, and the one distribution they agree on.

Trimmed intervals leave out the most extreme members of each class, which many members always have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import short_repr
from credalens.checks.arrays import as_array, read_array, row_tolerance
from credalens.checks.doubtful_members import warn_many_members
from credalens.checks.intervals import read_intervals, trusted_intervals
from credalens.checks.options import check_count, check_few_classes
from credalens.core.batches import for_each_chunk
from credalens.core.members import read_members

MOST_VERTEX_CLASSES = 16


@dataclass(frozen=True, eq=False)
class ProbabilityIntervals:
    """Lower and upper probability of every class, shape (*batch, classes) (paper, Eq. CredalPIs).

    They stand for the credal set {p : lower <= p <= upper, sum p = 1}, which must not be empty. Unpacks as
    ``lower, upper = intervals``. Make them of members with ``probability_intervals``, or of bounds that you have.

    >>> intervals = ProbabilityIntervals([0.0, 0.0, 0.0], [0.1, 0.6, 1.0])
    >>> [bound.round(2).tolist() for bound in intervals.tighten()]
    [[0.0, 0.0, 0.3], [0.1, 0.6, 1.0]]
    """

    lower: Any
    upper: Any
    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, read_array(getattr(self, name), name))
        read_intervals(self.lower, self.upper, reachable=False)

    @classmethod
    def _trusted(cls, lower: Any, upper: Any, /) -> ProbabilityIntervals:
        """Intervals of arrays that were computed or validated before."""
        intervals = object.__new__(cls)
        intervals.__dict__.update(lower=lower, upper=upper)
        return intervals

    def __iter__(self) -> Iterator[Any]:
        return iter((self.lower, self.upper))

    def contains(self, p: Any, /) -> Any:
        """Whether each distribution (..., *batch, classes) lies in its credal set, up to the rounding of its dtype."""
        intervals = trusted_intervals(self.lower, self.upper)
        q, array_kind = as_array(p, "p")
        classes, tolerance = intervals.lower.shape[-1], row_tolerance(array_kind.dtype)
        shape = (*intervals.batch, classes)
        try:
            fits = np.broadcast_shapes(q.shape[:-1], intervals.batch) is not None and q.shape[-1:] == shape[-1:]
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"p must have shape (..., {', '.join(map(str, shape))}) to go with intervals of shape {shape}; got {q.shape}."
            )
        low, high = (x.reshape(shape) for x in (intervals.lower, intervals.upper))
        inside = ((q >= low - tolerance) & (q <= high + tolerance)).all(axis=-1)
        return array_kind.restore(inside & (np.abs(q.sum(axis=-1, dtype=np.float64) - 1) <= tolerance))

    @property
    def is_reachable(self) -> Any:
        r"""Whether every single bound is attained by some distribution in the set.

        .. math:: l_k + \sum_{j \ne k} u_j \ge 1 \ \text{and}\ u_k + \sum_{j \ne k} l_j \le 1 \quad \text{for all } k
        """
        intervals = trusted_intervals(self.lower, self.upper)
        low, high = tightened(intervals.lower, intervals.upper)
        tolerance = row_tolerance(intervals.array_kind.dtype)
        same = (low - intervals.lower <= tolerance) & (intervals.upper - high <= tolerance)
        return intervals.restore(same.all(axis=-1))

    def tighten(self) -> ProbabilityIntervals:
        r"""The same credal set with every bound attained.

        .. math:: l'_k = \max(l_k, 1 - \sum_{j \ne k} u_j), \quad u'_k = \min(u_k, 1 - \sum_{j \ne k} l_j)
        """
        intervals = trusted_intervals(self.lower, self.upper)
        low, high = tightened(intervals.lower, intervals.upper)
        return ProbabilityIntervals._trusted(intervals.restore(low), intervals.restore(high))

    def vertices(self) -> Any:
        """The extreme points of the credal set: (vertices, classes), or a list of such arrays for a batch.

        Every class at a bound except one. Exponential in the classes, for study and plots: at most 16 classes.
        """
        intervals = trusted_intervals(self.lower, self.upper)
        check_few_classes(intervals.lower.shape[-1], MOST_VERTEX_CLASSES, "vertices()")
        kind, vertices, classes = intervals.array_kind, [], intervals.lower.shape[-1]
        up = (np.arange(2 ** (classes - 1))[:, None] >> np.arange(classes - 1)) & 1
        for low, high in zip(intervals.lower, intervals.upper, strict=True):
            candidates = []
            for free in range(classes):
                at_bound, p = np.delete(np.arange(classes), free), np.empty((len(up), classes))
                p[:, at_bound] = np.where(up, high[at_bound], low[at_bound])
                p[:, free] = 1 - p[:, at_bound].sum(axis=1)
                inside = (p[:, free] >= low[free] - 1e-12) & (p[:, free] <= high[free] + 1e-12)
                candidates.append(np.clip(p[inside], low, high))
            points = np.concatenate(candidates)
            _, first = np.unique(np.round(points, 11), axis=0, return_index=True)
            vertices.append(kind.restore(points[np.sort(first)].astype(kind.result_dtype)))
        return vertices if intervals.batch else vertices[0]


def tightened(low: NDArray, high: NDArray, /) -> tuple[NDArray, NDArray]:
    """Bounds (..., classes) of the same set, each of them attained."""
    least = 1 - (high.sum(axis=-1, keepdims=True) - high)
    most = 1 - (low.sum(axis=-1, keepdims=True) - low)
    tight = np.clip(least, low, high)  # not above high, where rounding lets a point's bounds cross
    return tight, np.clip(most, tight, high)


def probability_intervals(probs: Any, *, member_axis: int = 0, threads: int | None = None) -> ProbabilityIntervals:
    r"""Per class the lowest and the highest probability any member gives (paper, Eq. ExtractPI).

    .. math:: l_k = \min_n p_{n,k}, \quad u_k = \max_n p_{n,k}

    ``probs`` is (members, *batch, classes). The set is never empty and every bound is reached, since each member lies in
    it (Eq. Proof).

    >>> weather = [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]]
    >>> lower, upper = probability_intervals(weather)
    >>> lower, upper
    (array([0.1, 0.1, 0.2]), array([0.7, 0.6, 0.7]))
    """
    from credalens.kernels.members import bounds_rows

    warn_many_members(probs, "probs")
    members = read_members(probs, member_axis=member_axis)
    _, rows, classes = members.array.shape
    dtype = members.array_kind.result_dtype
    lower, upper = np.empty((rows, classes), dtype), np.empty((rows, classes), dtype)

    def work(start: int, stop: int) -> None:
        low, high, mean = np.empty((3, stop - start, classes))
        if not bounds_rows(*members.rows(start, stop), members.tolerance, low, high, mean):
            members.refuse()
        lower[start:stop], upper[start:stop] = low, high

    for_each_chunk(work, rows, classes, threads=threads)
    return ProbabilityIntervals._trusted(members.restore(lower), members.restore(upper))


def intersection_probability(lower: Any, upper: Any) -> Any:
    r"""The one distribution that lies equally deep in every interval (paper, Eq. intersection, alpha).

    .. math:: p^*_k = l_k + \alpha (u_k - l_k), \quad \alpha = (1 - \sum_k l_k) / \sum_k (u_k - l_k)

    Where all members agree the intervals are points and are returned as they are.

    >>> intersection_probability([0.1, 0.1, 0.2], [0.7, 0.6, 0.7]).round(4)
    array([0.325 , 0.2875, 0.3875])
    """
    from credalens.kernels.members import intersection_rows

    intervals = read_intervals(lower, upper)
    p = np.empty_like(intervals.lower)
    intersection_rows(intervals.lower, intervals.upper, p)
    return intervals.restore(p)


def approximate_intervals(lower: Any, upper: Any, classes: int) -> ProbabilityIntervals:
    r"""Probability interval approximation (PIA; paper, Alg. Interval Dimension Reduction), in its sound form.

    Use it to compare with the paper. It is not needed to save time: exact entropies of a thousand classes take about ten
    microseconds.

    Keeps the ``classes - 1`` classes with the highest intersection probability, in descending order, and merges the rest:

    .. math:: r_L = \max(1 - \sum_{kept} u,\ \sum_{rest} l), \quad r_U = \min(1 - \sum_{kept} l,\ \sum_{rest} u)

    The printed algorithm has the kept and the merged classes exchanged in these sums and can give an empty set: lower
    (.6, .1, .1), upper (.8, .2, .2) and two classes would become [.6, .8] twice. With as many classes as there are, or
    more, the intervals are returned unchanged.

    >>> [bound.round(2).tolist() for bound in approximate_intervals([0.6, 0.1, 0.1], [0.8, 0.2, 0.2], 2)]
    [[0.6, 0.2], [0.8, 0.4]]
    """
    from credalens.kernels.members import intersection_rows

    intervals = read_intervals(lower, upper)
    count = check_count(classes, "classes", least=2)
    if count >= intervals.lower.shape[-1]:
        return ProbabilityIntervals(lower, upper)
    p = np.empty_like(intervals.lower)
    intersection_rows(intervals.lower, intervals.upper, p)
    order = np.argsort(-p, axis=-1, kind="stable")
    low, high = (np.take_along_axis(bound, order, -1) for bound in (intervals.lower, intervals.upper))
    kept_low, rest_low = low[:, : count - 1], low[:, count - 1 :]
    kept_high, rest_high = high[:, : count - 1], high[:, count - 1 :]
    merged_low = np.maximum(1 - kept_high.sum(-1), rest_low.sum(-1))
    merged_high = np.minimum(1 - kept_low.sum(-1), rest_high.sum(-1))
    merged_high = np.maximum(merged_low, merged_high)  # equal up to rounding where all widths vanish
    low, high = np.c_[kept_low, merged_low], np.c_[kept_high, merged_high]
    return ProbabilityIntervals._trusted(intervals.restore(low), intervals.restore(high))


def left_out(trim: float, members: int, /) -> int:
    """How many members are left out at each end.

    >>> left_out(0.1, 40), left_out(0.1, 5), left_out(0.29, 100)
    (4, 0, 29)
    """
    count = int(trim * members)
    return count + 1 if (count + 1) / members <= trim else count


def trimmed_between(low: NDArray, high: NDArray, mean: NDArray, /) -> tuple[NDArray, NDArray, NDArray]:
    """Reachable bounds around the (k + 1)-th lowest and highest values.

    They are widened to hold the mean, so that the set is never empty, and then tightened.
    """
    return *tightened(np.minimum(low, mean), np.maximum(high, mean)), mean
