# mypy: ignore-errors
"""Counters on the device: what became of the rows, and how long the lists of rows are that kernels write for each other."""

import triton
import triton.language as tl

__all__ = ["COUNTERS", "CURSOR", "INVALID", "MANY_OPEN", "MARK", "OPEN", "OPEN_ROWS", "append_row"]

COUNTERS = tl.constexpr(32)  # integers, all zero at first:
MARK = tl.constexpr(0)  # OPEN if the search has left a row open, INVALID if one is not a distribution
MANY_OPEN = tl.constexpr(2)  # lengths of four lists of rows, by their open classes
OPEN_ROWS = tl.constexpr(8)  # lengths of eight lists of rows that the root leaves open
CURSOR = tl.constexpr(16)  # and how many of each a search has taken
OPEN, INVALID = tl.constexpr(1), tl.constexpr(2)


@triton.jit
def append_row(lists, lengths, rows, row, which):
    """Add a row to one of several lists (lists, rows), in no certain order."""
    place = tl.atomic_add(lengths + which, 1)
    tl.store(lists + tl.cast(rows, tl.int64) * which + place, row)
