# mypy: ignore-errors
"""Counters on the device of what becomes of rows, lists of rows that kernels write for each other, and the last step."""

import triton
import triton.language as tl

from credalens import kernels

COUNTERS = tl.constexpr(32)  # integers, all zero at first:
MARK = tl.constexpr(0)  # OPEN if the search has left a row open, INVALID if one is not a distribution
MANY_OPEN = tl.constexpr(2)  # lengths of four lists of rows, by their open classes
OPEN_ROWS = tl.constexpr(8)  # lengths of eight lists of rows that the root leaves open
CURSOR = tl.constexpr(16)  # and how many of each a search has taken
OPEN, INVALID = tl.constexpr(1), tl.constexpr(2)
ROUNDING = tl.constexpr(kernels.ROUNDING)  # bits


@triton.jit
def list_many_open(lists, counters, rows, row, number):
    """Add the rows with more than 64, 256 or 1024 open classes to a list (4, rows) each; the first is not used."""
    if tl.max(number) > 64:
        which = (number > 64).to(tl.int32) + (number > 256).to(tl.int32) + (number > 1024).to(tl.int32)
        place = tl.atomic_add(counters + MANY_OPEN + which, 1, mask=which > 0)
        tl.store(lists + tl.cast(rows, tl.int64) * which + place, row, mask=which > 0)


@triton.jit(do_not_specialize=["tolerance", "unit", "rows"])
def write_results(
    highest, lowest, bound, total, aleatoric, epistemic, certified, counters, tolerance, unit: tl.float64, rows,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Scale every row's entropies, none negative, in order; epistemic is exactly zero where only rounding makes a difference.

    Sets the counters' mark if the search has left a row with a gap above ``tolerance``, or if a row is not a distribution.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = row < rows
    high = tl.load(highest + row, mask=real, other=0.0)
    low = tl.maximum(tl.load(lowest + row, mask=real, other=0.0), 0.0)
    high = tl.where(high < low, low, high)  # in order, as each was rounded on its own way; NaN stays NaN
    least = tl.minimum(tl.maximum(tl.load(bound + row, mask=real, other=0.0), 0.0), low)
    mark = tl.max(tl.where(high != high, INVALID, tl.where(low - least > tolerance, OPEN, 0)), 0)
    if mark > 0:
        tl.atomic_max(counters + MARK, mark)
    spread = tl.where(high - low > ROUNDING, high - low, 0.0)
    kind = total.dtype.element_ty
    tl.store(total + row, (high * unit).to(kind), mask=real)
    tl.store(aleatoric + row, (low * unit + 0.0).to(kind), mask=real)
    tl.store(epistemic + row, (spread * unit).to(kind), mask=real)
    tl.store(certified + row, (least * unit + 0.0).to(kind), mask=real)
