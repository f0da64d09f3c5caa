# mypy: ignore-errors
"""What the searches on the GPU share: dominance, a node's decision as one number, counters and the lists they count."""

import triton
import triton.language as tl

__all__ = [
    "COUNTERS",
    "CURSOR",
    "DOWN",
    "FEW",
    "FREE",
    "INVALID",
    "LEFT",
    "MARK",
    "OPEN",
    "SLACK",
    "SPLIT",
    "UP",
    "WIDE",
    "append_row",
    "dominates",
    "pack_node",
    "unpack_node",
]

FREE, UP, DOWN, SPLIT = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
SLACK = tl.constexpr(1e-15)  # mass below this is rounding
FEW = tl.constexpr(96)  # open classes up to which one pass without a cutoff is quickest
COUNTERS = tl.constexpr(32)  # integers, all zero at first:
MARK = tl.constexpr(0)  # OPEN if the search has left a row open, INVALID if one is not a distribution
WIDE = tl.constexpr(2)  # lengths of four lists of rows, by their open classes
LEFT = tl.constexpr(8)  # lengths of eight lists of rows that the root leaves
CURSOR = tl.constexpr(16)  # and how many of each a search has taken
OPEN, INVALID = tl.constexpr(1), tl.constexpr(2)
CLASSES = tl.constexpr(8192)  # more than any class's position


@triton.jit
def dominates(low_i, high_i, i, low_j, high_j, j):
    """Fact c of ``kernels/lower/solve.py``, with equal intervals ordered by position."""
    return (low_i >= low_j) & (high_i >= high_j) & ((i < j) | (low_i > low_j) | (high_i > high_j))


@triton.jit
def append_row(lists, lengths, rows, row, which):
    """Add a row to one of several lists (lists, rows), in no certain order."""
    place = tl.atomic_add(lengths + which, 1)
    tl.store(lists + tl.cast(rows, tl.int64) * which + place, row)


@triton.jit
def pack_node(kind, f, split, depth):
    """Side, class, split class (-1 for none) and depth as one float64, exact below 2^53."""
    return (((depth.to(tl.int64) * CLASSES + split + 1) * CLASSES + f) * 4 + kind).to(tl.float64)


@triton.jit
def unpack_node(word):
    """The inverse of ``pack_node``; zero is the root."""
    bits = word.to(tl.int64)
    kind = (bits & 3).to(tl.int32)
    f = ((bits // 4) & (CLASSES - 1)).to(tl.int32)
    split = ((bits // (4 * CLASSES)) & (CLASSES - 1)).to(tl.int32) - 1
    return kind, f, split, (bits // (4 * CLASSES * CLASSES)).to(tl.int32)
