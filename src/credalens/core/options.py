"""How a credal prediction is computed, checked once and handed on as one object from the border to the kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from credalens.checks.options import check_base, check_count, check_threads, check_tolerance, check_trim

MAX_NODES: Final = 1_000_000
TOLERANCE: Final = 1e-12
"""Bits; a node of the search that cannot improve by more than this is closed."""


@dataclass(frozen=True)
class Options:
    """The unit of entropies, the intervals, and the budget of the search for the lowest entropy.

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

    @classmethod
    def checked(cls, *, base: Any, max_nodes: Any, tolerance: Any, threads: Any = None, trim: Any = 0.0) -> Options:
        """Options as a caller gave them; what cannot be is refused."""
        return cls(
            check_base(base),
            check_trim(trim),
            check_count(max_nodes, "max_nodes"),
            check_tolerance(tolerance),
            check_threads(threads),
        )

    @property
    def unit(self) -> float:
        """What a bit is in the unit of the base."""
        return 1.0 / math.log2(self.base)
