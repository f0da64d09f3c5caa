# mypy: ignore-errors
"""The last step, as ``kernels/write_results.py``: entropies in bits to the caller's unit and precision."""

import triton
import triton.language as tl

from credalens.cuda.counters import INVALID, MARK, OPEN
from credalens.kernels import epistemic

ROUNDING = tl.constexpr(epistemic.ROUNDING)  # bits


@triton.jit(do_not_specialize=["tolerance", "unit", "rows"])
def write_results(
    highest,
    lowest,
    bound,
    total,
    aleatoric,
    epistemic,
    certified,
    counters,
    tolerance,
    unit: tl.float64,
    rows,
    BLOCK: tl.constexpr,
):
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
