"""All arrays of a credal prediction, from members or from bounds, filled in chunks of rows."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.core.batches import for_each_chunk
from credalens.core.intervals import left_out, trimmed_between
from credalens.core.members import MemberArray
from credalens.core.options import Options, warn_open_rows

SMALL: Final = 4096  # values: for fewer it takes longer to get scratch memory than to work in it


class CredalArrays(NamedTuple):
    """The arrays of a credal prediction, of any library: four (*batch, classes), then four (*batch) in the caller's unit."""

    lower: Any
    upper: Any
    probability: Any
    mean: Any
    total: Any
    aleatoric: Any
    epistemic: Any
    aleatoric_bound: Any

    def map(self, convert: Callable[[Any], Any], /) -> CredalArrays:
        """``convert`` of each."""
        return CredalArrays(*map(convert, self))


@cache
def _kernels() -> Any:
    """Modules that are imported on first use, since ``import credalens`` does not import Numba."""
    from credalens.kernels import buffers, decompose, members
    from credalens.kernels.lower import enumeration, solve

    return SimpleNamespace(buffers=buffers, decompose=decompose, enumeration=enumeration, members=members, solve=solve)


class _Scratch:
    """Memory that kernels work in, for chunks of at most so many rows."""

    def __init__(self, rows: int, classes: int) -> None:
        kernels = _kernels()
        self.rows, self.classes = rows, classes
        self.search = kernels.solve.search_workspace(classes)
        self.records = kernels.solve.records_workspace(rows, classes)
        self.flips = kernels.enumeration.flips_workspace()


_SPARE: Final[deque[_Scratch]] = deque(maxlen=4)  # small ones of earlier calls


class Decomposition:
    """The arrays of a prediction for some rows, in the caller's precision, while they are filled.

    Rows are independent, so several threads may fill one object.
    """

    def __init__(self, rows: int, classes: int, dtype: np.dtype, options: Options, /) -> None:
        self.options = options
        several = _kernels().buffers.aligned_arrays
        self.arrays = CredalArrays(*several(4, (rows, classes), dtype), *several(4, (rows,), dtype))
        self._gaps: list[NDArray] = []  # in bits, of rows that were hard to solve
        self._unused = _SPARE if rows * classes <= SMALL else deque[_Scratch]()  # that no thread works in

    def solve_members(self, members: MemberArray, start: int, stop: int) -> bool:
        """Fill rows start..stop from member predictions; False if one of them is not a distribution."""
        class_outputs, entropies = tuple(x[start:stop] for x in self.arrays[:4]), np.empty((3, stop - start))
        array, first, last = members.rows(start, stop)
        scratch = self._take_scratch(stop - start)
        size = _kernels().decompose.decompose_members(
            array, first, last, members.tolerance, self.options.tolerance,
            class_outputs, tuple(entropies), scratch.records, scratch.search, np.empty(len(array)),
        )  # fmt: skip
        if size < 0:
            return False

        def bounds_of(rows: NDArray) -> tuple[NDArray, NDArray]:
            chosen = np.ascontiguousarray(array[:, first + rows])
            low, high, mean = np.empty((3, *chosen.shape[1:]))
            _kernels().members.bounds_rows(chosen, 0, len(low), members.tolerance, low, high, mean)
            return low, high

        self._finish(start, stop, size, entropies, scratch, bounds_of)
        return True

    def solve_bounds(self, low: NDArray, high: NDArray, mean: NDArray, start: int, stop: int) -> None:
        """Fill rows start..stop from their lower, upper and mean probabilities in float64."""
        lower, upper, probability, averaged = (x[start:stop] for x in self.arrays[:4])
        lower[:], upper[:], averaged[:] = low, high, mean
        entropies, scratch = np.empty((3, stop - start)), self._take_scratch(stop - start)
        size = _kernels().decompose.decompose_bounds(
            low, high, self.options.tolerance, probability, tuple(entropies), scratch.records, scratch.search
        )
        self._finish(start, stop, size, entropies, scratch, lambda rows: (low[rows], high[rows]))

    def warn_if_open(self, *, stacklevel: int = 2) -> None:
        """Warn if the budget ended before the lowest entropy of every row was certified."""
        if self._gaps:
            narrow = self.arrays.total.dtype == np.float32
            rows, gaps = len(self.arrays.total), np.concatenate(self._gaps)
            warn_open_rows(gaps, rows, self.options, narrow=narrow, stacklevel=stacklevel + 1)

    def _take_scratch(self, rows: int) -> _Scratch:
        """Scratch memory for some rows that no other thread works in."""
        classes = self.arrays.lower.shape[1]
        try:
            scratch = self._unused.pop()
        except IndexError:  # each thread's first rows
            return _Scratch(rows, classes)
        return scratch if scratch.rows >= rows and scratch.classes == classes else _Scratch(rows, classes)

    def _finish(
        self, start: int, stop: int, size: int, entropies: NDArray, scratch: _Scratch,
        bounds_of: Callable[[NDArray], tuple[NDArray, NDArray]],
    ) -> None:  # fmt: skip
        """Search the rows that have records, then on for those still open, by their bounds, and write in the caller's unit.

        The first search is a kernel that is compiled only if there is a row for it.
        """
        solve, options, (_, lowest, bound) = _kernels().solve, self.options, entropies
        rows, number = np.empty(stop - start, np.int64), 0
        if size > 0:
            share = solve.first_share(options.max_nodes)
            number = solve.enumerate_records(
                scratch.records, size, options.tolerance, share, lowest, bound, rows, scratch.flips
            )
        self._unused.append(scratch)
        if number > 0:
            rows, nowhere = rows[:number], np.empty((stop - start, 0))
            low, high = bounds_of(rows)
            solve.solve_open_rows(low, high, options.tolerance, options.max_nodes, rows, lowest, bound, nowhere)
            self._gaps.append(lowest[rows] - bound[rows])
        _kernels().decompose.write_results(entropies, options.unit, *(x[start:stop] for x in self.arrays[4:]))


def decompose_members(members: MemberArray, options: Options, name: str, /, *, stacklevel: int = 2) -> CredalArrays:
    """The arrays of a prediction by members whose shape has been checked; their rows are checked here."""
    count, rows, classes = members.array.shape
    results = Decomposition(rows, classes, members.array_kind.result_dtype, options)
    out = members_left_out(options.trim, count, stacklevel=stacklevel + 1)

    def work(start: int, stop: int) -> None:
        if not results.solve_members(members, start, stop):
            members.refuse(name)

    def work_trimmed(start: int, stop: int) -> None:
        part = replace(members, array=members.array[:, start:stop])
        if not part.are_distributions():
            members.refuse(name)
        p = part.normalised().array
        ordered = np.partition(p, (out, count - 1 - out), axis=0)
        results.solve_bounds(*trimmed_between(ordered[out], ordered[count - 1 - out], p.mean(axis=0)), start, stop)

    for_each_chunk(work_trimmed if out else work, rows, classes, threads=options.threads)
    results.warn_if_open(stacklevel=stacklevel + 1)
    return results.arrays.map(members.restore)


def decompose_bounds(
    low: NDArray, high: NDArray, mean: NDArray, dtype: np.dtype, options: Options, /, *, stacklevel: int = 2
) -> CredalArrays:
    """The arrays of a prediction in rows, from bounds and means (rows, classes) in float64."""
    rows, classes = low.shape
    results = Decomposition(rows, classes, dtype, options)

    def work(start: int, stop: int) -> None:
        results.solve_bounds(low[start:stop], high[start:stop], mean[start:stop], start, stop)

    for_each_chunk(work, rows, classes, threads=options.threads)
    results.warn_if_open(stacklevel=stacklevel + 1)
    return results.arrays


def members_left_out(trim: float, members: int, /, *, stacklevel: int = 2) -> int:
    """How many members are left out at each end; a warning where ``trim`` is too small for one."""
    out = left_out(trim, members)
    if trim and not out:
        warnings.warn(
            f"trim={trim:g} of {count_text(members, 'member')} leaves out none, so the intervals are as wide as without it. "
            f"It needs at least {math.ceil(1 / trim)} members; the share of one of {members} is {1 / members:.3g}.",
            stacklevel=stacklevel,
        )
    return out
