# mypy: ignore-errors
"""Nodes of the branch and bound: dominance between classes, and a node's decision as one number."""

import triton
import triton.language as tl

__all__ = ["DOWN", "FEW", "FREE", "SLACK", "SPLIT", "UP", "dominates", "pack_node", "unpack_node"]

FREE, UP, DOWN, SPLIT = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
SLACK = tl.constexpr(1e-15)  # mass below this is rounding
FEW = tl.constexpr(96)  # open classes up to which one pass without a cutoff is quickest
CLASSES = tl.constexpr(8192)  # more than any class's position


@triton.jit
def dominates(low_i, high_i, i, low_j, high_j, j):
    """Fact c of ``kernels/lower/solve.py``, with equal intervals ordered by position."""
    return (low_i >= low_j) & (high_i >= high_j) & ((i < j) | (low_i > low_j) | (high_i > high_j))


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
