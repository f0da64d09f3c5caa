"""Everything a credal prediction holds, from members or from bounds, filled in chunks of rows."""

from __future__ import annotations

from collections import deque
from functools import cache
from types import ModuleType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.checks.members import MemberArray
from credalens.core.open_rows import warn_open_rows
from credalens.core.options import Options
from credalens.kernels.buffers import aligned_arrays

SMALL: Final = 4096  # values: for fewer it takes longer to get scratch memory than to work in it


class _Kernels(NamedTuple):
    """Modules that are imported on first use, since ``import credalens`` does not import Numba."""

    decompose: ModuleType
    enumeration: ModuleType
    records: ModuleType
    solve: ModuleType
    write_results: ModuleType


@cache
def _kernels() -> _Kernels:
    from credalens.kernels import decompose, write_results
    from credalens.kernels.lower import enumeration, records, solve

    return _Kernels(decompose, enumeration, records, solve, write_results)


class _Scratch:
    """Memory that kernels work in, for chunks of at most so many rows."""

    def __init__(self, rows: int, classes: int) -> None:
        kernels = _kernels()
        self.rows, self.classes = rows, classes
        self.search = kernels.solve.search_workspace(classes)
        self.records = kernels.records.records_workspace(rows, classes)
        self.flips = kernels.enumeration.flips_workspace()


_SPARE: Final[deque[_Scratch]] = deque(maxlen=4)  # small ones of earlier calls


class Decomposition:
    """The output arrays for some rows, in the caller's precision: bounds, point predictions, and entropies.

    Rows are independent, so several threads may fill one object.
    """

    def __init__(self, rows: int, classes: int, dtype: np.dtype, options: Options, /) -> None:
        self.options = options
        self.lower, self.upper, self.probability, self.mean = aligned_arrays(4, (rows, classes), dtype)
        self.total, self.aleatoric, self.epistemic, self.bound = aligned_arrays(4, (rows,), dtype)
        self._gaps: list[NDArray] = []  # in bits, of rows that were hard to solve
        self._unused = _SPARE if rows * classes <= SMALL else deque[_Scratch]()  # that no thread works in

    def solve_members(self, members: MemberArray, start: int, stop: int) -> bool:
        """Fill rows start..stop from member predictions; False if one of them is not a distribution."""
        outputs = (self.lower, self.upper, self.probability, self.mean)
        class_outputs, entropies = tuple(x[start:stop] for x in outputs), np.empty((3, stop - start))
        array, first, last = members.rows(start, stop)
        scratch = self._take_scratch(stop - start)
        size = _kernels().decompose.decompose_members(
            array, first, last, members.tolerance, self.options.tolerance,
            class_outputs, tuple(entropies), scratch.records, scratch.search, np.empty(len(array)),
        )  # fmt: skip
        if size < 0:
            return False
        open_rows = self._enumerate(size, entropies, scratch)
        self._unused.append(scratch)
        if open_rows.size > 0:
            low, high = _bounds_of(array[:, first + open_rows], members.tolerance)
            self._solve_open(low, high, open_rows, entropies)
        self._write(start, stop, entropies)
        return True

    def solve_bounds(self, low: NDArray, high: NDArray, mean: NDArray, start: int, stop: int) -> None:
        """Fill rows start..stop from their lower, upper and mean probabilities in float64."""
        self.lower[start:stop], self.upper[start:stop], self.mean[start:stop] = low, high, mean
        entropies, scratch = np.empty((3, stop - start)), self._take_scratch(stop - start)
        size = _kernels().decompose.decompose_bounds(
            low,
            high,
            self.options.tolerance,
            self.probability[start:stop],
            tuple(entropies),
            scratch.records,
            scratch.search,
        )
        open_rows = self._enumerate(size, entropies, scratch)
        self._unused.append(scratch)
        if open_rows.size > 0:
            self._solve_open(low[open_rows], high[open_rows], open_rows, entropies)
        self._write(start, stop, entropies)

    def warn_if_open(self, *, stacklevel: int = 2) -> None:
        """Warn if the budget ended before the lowest entropy of every row was certified."""
        if self._gaps:
            warn_open_rows(
                np.concatenate(self._gaps),
                len(self.total),
                max_nodes=self.options.max_nodes,
                tolerance=self.options.tolerance,
                narrow=self.aleatoric.dtype == np.float32,
                stacklevel=stacklevel + 1,
            )

    def _take_scratch(self, rows: int) -> _Scratch:
        """Scratch memory for some rows that no other thread works in."""
        classes = self.lower.shape[1]
        try:
            scratch = self._unused.pop()
        except IndexError:  # each thread's first rows
            return _Scratch(rows, classes)
        return scratch if scratch.rows >= rows and scratch.classes == classes else _Scratch(rows, classes)

    def _enumerate(self, size: int, entropies: NDArray, scratch: _Scratch) -> NDArray:
        """Search the rows that have records, which the kernel is compiled for only if there are any; those still open."""
        open_rows = np.empty(entropies.shape[1], np.int64)
        if size == 0 or self.options.max_nodes == 0:
            return open_rows[:0]
        _, lowest, bound = entropies
        share = _kernels().solve.first_share(self.options.max_nodes)
        number = _kernels().records.enumerate_records(
            scratch.records, size, self.options.tolerance, share, lowest, bound, open_rows, scratch.flips
        )
        return open_rows[:number]

    def _solve_open(self, low: NDArray, high: NDArray, rows: NDArray, entropies: NDArray) -> None:
        """Search on for the given bounds, whose results are in these rows of ``entropies``."""
        _, lowest, bound = entropies
        nowhere = np.empty((entropies.shape[1], 0))
        _kernels().solve.solve_open_rows(
            low, high, self.options.tolerance, self.options.max_nodes, rows, lowest, bound, nowhere
        )
        self._gaps.append(lowest[rows] - bound[rows])

    def _write(self, start: int, stop: int, entropies: NDArray) -> None:
        """Entropies in bits to the results in the caller's unit, none of them minus zero."""
        results = (self.total, self.aleatoric, self.epistemic, self.bound)
        _kernels().write_results.write_results(entropies, self.options.unit, *(x[start:stop] for x in results))


def _bounds_of(members: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
    """Lower and upper bounds in float64 of rows (members, rows, classes) that have been accepted."""
    from credalens.kernels.bounds import bounds_rows

    low, high, mean = np.empty((3, *members.shape[1:]))
    bounds_rows(np.ascontiguousarray(members), 0, len(low), tolerance, low, high, mean)
    return low, high
