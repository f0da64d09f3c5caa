"""Everything a credal prediction holds, from members or from bounds, filled in chunks of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.member_array import MemberArray
from credalens.checks.options import check_base
from credalens.core.memory import aligned_arrays

__all__ = ["FEW_CLASSES", "Decomposition"]

FEW_CLASSES = 10  # above, comparing every pair of classes costs more than rows side by side save


class Decomposition:
    """The output arrays for some rows, in the caller's precision: bounds, point predictions, and entropies in ``base``.

    Rows are independent, so several threads may fill one object.
    """

    def __init__(self, rows: int, classes: int, dtype: np.dtype, *, base: float) -> None:
        self.scale = 1.0 / math.log2(check_base(base))
        self.lower, self.upper, self.probability, self.mean = aligned_arrays(4, (rows, classes), dtype)
        self.total, self.aleatoric, self.epistemic, self.bound = aligned_arrays(4, (rows,), dtype)
        self._spare: list[tuple[Any, ...]] = []  # scratch memory that no thread works in

    def solve_members(self, members: MemberArray, start: int, stop: int, *, max_nodes: int, tolerance: float) -> bool:
        """Fill rows start..stop from member predictions; False if one of them is not a distribution."""
        if self.lower.shape[1] > FEW_CLASSES:
            return self._solve_many(members, start, stop, max_nodes=max_nodes, tolerance=tolerance)
        return self._solve_few(members, start, stop, max_nodes=max_nodes, tolerance=tolerance)

    def _solve_few(self, members: MemberArray, start: int, stop: int, *, max_nodes: int, tolerance: float) -> bool:
        """Rows side by side; those that this leaves open one by one."""
        from credalens.kernels.decompose_few import decompose_rows, open_rows, scratch

        rows, classes = stop - start, self.lower.shape[1]
        outputs = (self.lower, self.upper, self.probability, self.mean)
        wide, narrow = tuple(x[start:stop] for x in outputs), np.empty((3, rows))
        place, known, roots = open_rows(rows, classes)
        found = decompose_rows(
            *members.rows(start, stop), members.tolerance, tolerance, wide, tuple(narrow),
            place, known, roots, *scratch(classes),
        )  # fmt: skip
        if found < 0:
            return False
        if found > 0:
            place, (_, lowest, bound) = place[:found], narrow
            lowest[place], bound[place] = _settle(
                known[:found], roots[:found], lowest[place], bound[place], max_nodes=max_nodes, tolerance=tolerance
            )
        self._keep(start, stop, narrow)
        return True

    def _solve_many(self, members: MemberArray, start: int, stop: int, *, max_nodes: int, tolerance: float) -> bool:
        """One row after the other: with many classes the loops over them are long enough."""
        from credalens.kernels.decompose import decompose_many_rows
        from credalens.kernels.lower.solve import search_workspace

        outputs = (self.lower, self.upper, self.probability, self.mean)
        wide, narrow = tuple(x[start:stop] for x in outputs), np.empty((3, stop - start))
        left = np.empty(stop - start, np.int64)
        array, first, last = members.rows(start, stop)
        try:
            scratch, scales = self._spare.pop()
        except IndexError:  # each thread's first rows
            scratch, scales = search_workspace(self.lower.shape[1]), np.empty(len(array))
        found = decompose_many_rows(
            array, first, last, members.tolerance, tolerance, max_nodes, wide, tuple(narrow), left, scratch, scales
        )
        self._spare.append((scratch, scales))
        if found < 0:
            return False
        if found > 0:
            low, high = _bounds_of(array[:, first + left[:found]], members.tolerance)
            _branch(low, high, left[:found], narrow, max_nodes=max_nodes, tolerance=tolerance)
        self._keep(start, stop, narrow)
        return True

    def solve_bounds(
        self, low: NDArray, high: NDArray, mean: NDArray, start: int, stop: int, *, max_nodes: int, tolerance: float
    ) -> None:
        """Fill rows start..stop from their lower, upper and mean probabilities in float64."""
        from credalens.kernels.lower.solve import both_entropies_rows, search_workspace

        self.lower[start:stop], self.upper[start:stop], self.mean[start:stop] = low, high, mean
        narrow, left = np.empty((3, stop - start)), np.empty(stop - start, np.int64)
        found = both_entropies_rows(
            low,
            high,
            tolerance,
            max_nodes,
            self.probability[start:stop],
            tuple(narrow),
            left,
            search_workspace(low.shape[1]),
        )
        if found > 0:
            left = left[:found]
            _branch(low[left], high[left], left, narrow, max_nodes=max_nodes, tolerance=tolerance)
        self._keep(start, stop, narrow)

    def _keep(self, start: int, stop: int, narrow: NDArray) -> None:
        """Highest and lowest entropy and its bound, in bits, to their places in the caller's unit, none of them minus zero."""
        from credalens.kernels.write_results import keep_rows

        results = (self.total, self.aleatoric, self.epistemic, self.bound)
        keep_rows(narrow, self.scale, *(x[start:stop] for x in results))


def _settle(
    known: NDArray, roots: NDArray, value: NDArray, bound: NDArray, *, max_nodes: int, tolerance: float
) -> tuple[NDArray, NDArray]:
    """Value and certified bound of open rows of few classes: by trying every vertex, the search where these are many.

    Each is compiled only when a row needs it.
    """
    from credalens.kernels.lower.flips import settle_rows

    settle_rows(known, roots, value, bound)
    left = np.flatnonzero(bound < value - tolerance)
    if left.size > 0:
        from credalens.kernels.lower.solve import lower_entropy_rows

        parts = (np.ascontiguousarray(known[left, n]) for n in range(2))
        best, floor = value[left], bound[left]
        lower_entropy_rows(*parts, tolerance, max_nodes, best, floor, np.empty((left.size, 0)))
        value[left], bound[left] = best, floor
    return value, bound


def _bounds_of(members: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
    """Lower and upper bounds in float64 of rows (members, rows, classes) that have been accepted."""
    from credalens.kernels.bounds import bounds_rows

    low, high, mean = np.empty((3, *members.shape[1:]))
    bounds_rows(np.ascontiguousarray(members), 0, len(low), tolerance, low, high, mean)
    return low, high


def _branch(low: NDArray, high: NDArray, rows: NDArray, narrow: NDArray, *, max_nodes: int, tolerance: float) -> None:
    """Branch and bound for the given bounds, whose results are in these rows of ``narrow``."""
    from credalens.kernels.lower.solve import branch_rows

    value, bound = narrow[1:, rows]
    branch_rows(low, high, tolerance, max_nodes, np.arange(len(rows)), value, bound, np.empty((len(rows), 0)))
    narrow[1, rows], narrow[2, rows] = value, bound
