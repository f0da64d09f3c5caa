"""Maximum mean imprecision of interval credal sets: the event about which the set says least."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.intervals import IntervalArray, read_intervals
from credalens.core.batches import in_chunks
from credalens.core.options import MAX_NODES, Options, warn_open_rows

NOTHING = 1e-13  # below this it is rounding, and the set a single distribution


def maximum_mean_imprecision(lower: Any, upper: Any, *, return_bounds: bool = False, threads: int | None = None) -> Any:
    r"""The largest difference between the upper and the lower probability of any event, (*batch).

    .. math:: MMI = \max_A \overline P(A) - \underline P(A)
              = \min\Big(\sum_k u_k - 1,\ 1 - \sum_k l_k,\ \max_A \min(w(A), w(A^c))\Big), \quad w = u - l

    Between 0, for a single distribution, and 1. The last term is a balanced partition of the widths. A greedy one that
    reaches one of the first two terms is the answer at once, as for nearly all real predictions of three or more members;
    else a search over subsets decides, O(C log C) per row without it. ``return_bounds`` adds a certified bracket
    (low, high), wider than a point only where the search ended after a million nodes, some 3 ms; a warning says for how many
    rows, and how far the value may be too low. Of two members it is half
    their L1 distance: `CredalPrediction.score` knows how many members there are and needs no search, while bounds alone
    do not say it, and from 20 classes on leave such a bracket.

    >>> round(float(maximum_mean_imprecision([0.2, 0.1, 0.0], [0.7, 0.6, 0.3])), 6)
    0.5
    """
    value, low, high = imprecision_of(read_intervals(lower, upper), threads=threads, stacklevel=3)
    return (value, (low, high)) if return_bounds else value


def imprecision_of(
    intervals: IntervalArray, /, *, members: int | None = None, threads: int | None = None, stacklevel: int = 2
) -> tuple[Any, Any, Any]:
    """The measure and its bracket (value, low, high) of validated intervals; the value is the lower end.

    The classes that each of two ``members`` favours are a partition of the widths into halves.
    """
    from credalens.kernels.imprecision import imprecision_rows

    rows, classes = intervals.lower.shape
    if members == 2:
        return (intervals.restore(0.5 * (intervals.upper - intervals.lower).sum(axis=-1)),) * 3
    low, high = np.empty((2, rows))

    def work(lower: NDArray, upper: NDArray, low: NDArray, high: NDArray) -> None:
        widths = np.sort(upper - lower, axis=-1)[:, ::-1]
        limit = np.minimum(upper.sum(axis=-1) - 1.0, 1.0 - lower.sum(axis=-1))
        limit[limit <= NOTHING] = 0.0
        scratch = *np.empty((2, classes + 1)), np.empty(classes + 1, np.int64)
        imprecision_rows(np.ascontiguousarray(widths), limit, MAX_NODES, low, high, *scratch)

    in_chunks(work, intervals.lower, intervals.upper, low, high, classes=classes, threads=threads)
    narrow = intervals.array_kind.result_dtype == np.float32
    warn_open_rows(
        high - low, rows, Options(max_nodes=MAX_NODES), measure="imprecision", narrow=narrow, stacklevel=stacklevel + 1
    )
    return intervals.restore(low), intervals.restore(low), intervals.restore(high)
