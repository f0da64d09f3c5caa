"""Options of a computation, one object from the border to the kernels, and the rows that its budget leaves open.

Rows whose search ended before its result was certified cause a warning with their number, or one for many calls.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import check_base, check_count, check_threads, check_tolerance, check_trim, count_text

MAX_NODES: Final = 1_000_000
TOLERANCE: Final = 1e-12
"""Bits; a node of the search that cannot improve by more than this is closed."""


@dataclass(frozen=True)
class Options:
    """The unit of entropies, the intervals, and the budget of the search for the lowest entropy; checked when made.

    :ivar base: of the logarithm.
    :ivar trim: the share of the members that intervals leave out at each end.
    :ivar max_nodes: the work after which the search of a row ends.
    :ivar tolerance: bits between value and certified bound at which it ends before.
    :ivar threads: how many work at once; None for all cores.

    >>> Options(base=4).unit
    0.5
    """

    base: float = 2.0
    trim: float = 0.0
    max_nodes: int = MAX_NODES
    tolerance: float = TOLERANCE
    threads: int | None = None

    def __post_init__(self) -> None:
        self.__dict__.update(
            base=check_base(self.base),
            trim=check_trim(self.trim),
            max_nodes=check_count(self.max_nodes, "max_nodes"),
            tolerance=check_tolerance(self.tolerance),
            threads=check_threads(self.threads),
        )

    @property
    def unit(self) -> float:
        """One bit in the unit of the base."""
        return 1.0 / math.log2(self.base)


@lru_cache(maxsize=64, typed=True)
def _made(**options: Any) -> Options:
    return Options(**options)


def options_of(**options: Any) -> Options:
    """The options with these values, kept: checking them takes a tenth of the time of a prediction of one row."""
    try:
        return _made(**options)
    except TypeError:  # something that cannot be kept, such as an array, or that is refused
        return Options(**options)


OPEN: Final = 1e-9
"""Between value and bound: from here on a row is not certified."""
OPEN_NARROW: Final = 1e-6
"""The same for float32 results, whose last digits are as large."""
CONSEQUENCES: Final = {
    "aleatoric": "the lowest entropy (aleatoric) lies up to {gap:.3g} bits above its certified bound, and epistemic may be too "
    "low by as much. In Python a larger max_nodes= of wrap, or of what else computed them, closes more rows.",
    "imprecision": "imprecision may be too low by up to {gap:.3g}. "
    "maximum_mean_imprecision(lower, upper, return_bounds=True) returns what it lies between.",
}


@dataclass(frozen=True)
class OpenRows:
    """How many rows a search left open, and how far.

    :ivar measure: what was searched for, a key of ``CONSEQUENCES``.
    :ivar gap: the largest distance between value and bound.
    :ivar max_nodes: the budget of each row.
    """

    measure: str
    count: int
    gap: float
    max_nodes: int

    def sentence(self, rows: int, /) -> str:
        """Say what it means, where so many rows were searched."""
        return (
            f"{self.count:,} of {count_text(rows, 'row')} {'is' if self.count == 1 else 'are'} not certified after "
            f"max_nodes={self.max_nodes}: {CONSEQUENCES[self.measure].format(gap=self.gap)}"
        )


_COLLECTED: ContextVar[list[OpenRows] | None] = ContextVar("_COLLECTED", default=None)


@contextmanager
def collecting_open_rows() -> Iterator[list[OpenRows]]:
    """Collect what would be warned of, for work that is done in many calls; hand it to `warn_of_all`."""
    collected: list[OpenRows] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)


def warn_open_rows(
    gaps: NDArray,
    rows: int,
    options: Options,
    /,
    *,
    measure: str = "aleatoric",
    narrow: bool = False,
    stacklevel: int = 2,
) -> None:
    """Warn if some of ``rows`` rows, with these gaps between value and bound, are open after the search."""
    visible = max(OPEN_NARROW if narrow else OPEN, 2 * options.tolerance)
    if not (count := int((gaps > visible).sum())):
        return
    open_rows, collected = OpenRows(measure, count, float(np.max(gaps)), options.max_nodes), _COLLECTED.get()
    if collected is None:
        warnings.warn(open_rows.sentence(rows), RuntimeWarning, stacklevel=stacklevel)
    else:
        collected.append(open_rows)


def totals_of(collected: Iterable[OpenRows], /) -> list[OpenRows]:
    """All that is about the same measure in one."""
    totals: dict[str, OpenRows] = {}
    for entry in collected:
        before = totals.setdefault(entry.measure, replace(entry, count=0))
        totals[entry.measure] = replace(before, count=before.count + entry.count, gap=max(before.gap, entry.gap))
    return list(totals.values())


def warn_of_all(collected: Iterable[OpenRows], rows: int, /, *, stacklevel: int = 2) -> None:
    """Warn once for each measure of what `collecting_open_rows` collected while so many rows were searched."""
    for total in totals_of(collected):
        warnings.warn(total.sentence(rows), RuntimeWarning, stacklevel=stacklevel + 1)
