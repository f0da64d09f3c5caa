"""Everything a credal prediction holds, from members or from bounds, filled in chunks of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.member_array import MemberArray
from credalens.checks.options import check_base
from credalens.kernels.buffers import aligned_arrays

__all__ = ["Decomposition"]


class Decomposition:
    """The output arrays for some rows, in the caller's precision: bounds, point predictions, and entropies in ``base``.

    Rows are independent, so several threads may fill one object.
    """

    def __init__(
        self, rows: int, classes: int, dtype: np.dtype, *, base: float, max_nodes: int, tolerance: float
    ) -> None:
        self.scale = 1.0 / math.log2(check_base(base))
        self.max_nodes, self.tolerance = max_nodes, tolerance
        self.lower, self.upper, self.probability, self.mean = aligned_arrays(4, (rows, classes), dtype)
        self.total, self.aleatoric, self.epistemic, self.bound = aligned_arrays(4, (rows,), dtype)
        self._unused: list[tuple[Any, ...]] = []  # scratch memory that no thread works in

    def solve_members(self, members: MemberArray, start: int, stop: int) -> bool:
        """Fill rows start..stop from member predictions; False if one of them is not a distribution."""
        from credalens.kernels.decompose import decompose_members
        from credalens.kernels.lower.solve import search_workspace

        outputs = (self.lower, self.upper, self.probability, self.mean)
        class_outputs, entropies = tuple(x[start:stop] for x in outputs), np.empty((3, stop - start))
        open_rows = np.empty(stop - start, np.int64)
        array, first, last = members.rows(start, stop)
        try:
            workspace, scales = self._unused.pop()
        except IndexError:  # each thread's first rows
            workspace, scales = search_workspace(self.lower.shape[1]), np.empty(len(array))
        number = decompose_members(
            array, first, last, members.tolerance, self.tolerance, self.max_nodes,
            class_outputs, tuple(entropies), open_rows, workspace, scales,
        )  # fmt: skip
        self._unused.append((workspace, scales))
        if number < 0:
            return False
        if number > 0:
            low, high = _bounds_of(array[:, first + open_rows[:number]], members.tolerance)
            self._branch(low, high, open_rows[:number], entropies)
        self._write(start, stop, entropies)
        return True

    def solve_bounds(self, low: NDArray, high: NDArray, mean: NDArray, start: int, stop: int) -> None:
        """Fill rows start..stop from their lower, upper and mean probabilities in float64."""
        from credalens.kernels.decompose import decompose_bounds
        from credalens.kernels.lower.solve import search_workspace

        self.lower[start:stop], self.upper[start:stop], self.mean[start:stop] = low, high, mean
        entropies, open_rows = np.empty((3, stop - start)), np.empty(stop - start, np.int64)
        number = decompose_bounds(
            low, high, self.tolerance, self.max_nodes, self.probability[start:stop], tuple(entropies), open_rows,
            search_workspace(low.shape[1]),
        )  # fmt: skip
        if number > 0:
            open_rows = open_rows[:number]
            self._branch(low[open_rows], high[open_rows], open_rows, entropies)
        self._write(start, stop, entropies)

    def _branch(self, low: NDArray, high: NDArray, rows: NDArray, entropies: NDArray) -> None:
        """Branch and bound for the given bounds, whose results are in these rows of ``entropies``."""
        from credalens.kernels.lower.solve import branch_rows

        value, bound = entropies[1:, rows]
        nowhere = np.empty((len(rows), 0))
        branch_rows(low, high, self.tolerance, self.max_nodes, np.arange(len(rows)), value, bound, nowhere)
        entropies[1, rows], entropies[2, rows] = value, bound

    def _write(self, start: int, stop: int, entropies: NDArray) -> None:
        """Entropies in bits to the results in the caller's unit, none of them minus zero."""
        from credalens.kernels.write_results import write_results

        results = (self.total, self.aleatoric, self.epistemic, self.bound)
        write_results(entropies, self.scale, *(x[start:stop] for x in results))


def _bounds_of(members: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
    """Lower and upper bounds in float64 of rows (members, rows, classes) that have been accepted."""
    from credalens.kernels.bounds import bounds_rows

    low, high, mean = np.empty((3, *members.shape[1:]))
    bounds_rows(np.ascontiguousarray(members), 0, len(low), tolerance, low, high, mean)
    return low, high
