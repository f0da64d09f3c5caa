# mypy: ignore-errors
"""Sums and searches over the rows of tiles: (rows, blocks of classes, classes of a block)."""

import triton
import triton.language as tl

EXACT = tl.constexpr(1e-14)  # a row this close to one is left as it is
NO_WIDTH = tl.constexpr(1e-15)  # a sum of widths below this is rounding: the members agree
LOGITS = tl.constexpr(1)  # the KIND of members that are logits
DECADES = tl.constexpr(1e-12)
HALVINGS = tl.constexpr(6)
LEVEL_STEPS = tl.constexpr(4)  # towards the water level
ROUNDED_SUM = tl.constexpr(1.00001)  # more than a float32 sum of positive terms can be off, relatively
ROUNDED = tl.constexpr(1.0000002)  # more than a float32 can be off


@triton.jit
def row_sum(x):
    """The sum over the classes of every row."""
    if x.shape[0] * x.shape[1] == 1:
        total = tl.zeros((1, 1, 1), x.dtype) + tl.sum(x)
    else:
        total = tl.sum(tl.sum(x, 1, keep_dims=True), 2, keep_dims=True)
    return total


@triton.jit
def row_sums(x, y):
    """Two sums at once: where a row lies on several warps, these wait for each other once."""
    if x.shape[0] * x.shape[1] == 1:
        pair = tl.join(tl.reshape(x, (x.numel,), can_reorder=True), tl.reshape(y, (y.numel,), can_reorder=True))
        sum_x, sum_y = tl.split(tl.sum(pair, 0))
        sum_x += tl.zeros((1, 1, 1), x.dtype)
        sum_y += tl.zeros((1, 1, 1), y.dtype)
    else:
        sum_x, sum_y = lane_sums(tl.sum(x, 1, keep_dims=True), tl.sum(y, 1, keep_dims=True))
    return sum_x, sum_y


@triton.jit
def lane_sums(x, y):
    """``row_sums`` of what the threads have summed over their own blocks."""
    return tl.split(tl.sum(tl.join(x, y), 2, keep_dims=True))


@triton.jit
def row_max(x):
    """The greatest value of every row."""
    if x.shape[0] * x.shape[1] == 1:
        most = tl.zeros((1, 1, 1), x.dtype) + tl.max(x)
    else:
        most = tl.max(tl.max(x, 1, keep_dims=True), 2, keep_dims=True)
    return most


@triton.jit
def positions(mask):
    """A place of its own for every class in ``mask``, counted from zero in every row, and how many there are."""
    one = mask.to(tl.int32)
    column = tl.sum(one, 1, keep_dims=True)
    until = tl.cumsum(column, 2)
    return until - column + tl.cumsum(one, 1) - 1, tl.max(until, 2, keep_dims=True)


@triton.jit
def swings(excess, before):
    """Whether Newton steps go to and fro: the excess has changed its sign and is still more than half of what it was."""
    return excess * before < -0.5 * before * before


@triton.jit
def rough_level(low, high, classes):
    """Where the water level is, nearly: some safeguarded Newton steps in float32."""
    floor = tl.zeros((low.shape[0], 1, 1), tl.float32)
    top = floor + 1.0
    t = floor + 1.0 / classes
    for _ in range(LEVEL_STEPS):
        clipped = tl.minimum(tl.maximum(low, t), high)
        filled, free = row_sums(clipped, tl.where(clipped == t, 1.0, 0.0))
        over = filled > 1.0
        top = tl.where(over, t, top)
        floor = tl.where(over, floor, t)
        step = t - (filled - 1.0) / tl.maximum(free, 1.0)
        t = tl.where((step >= floor) & (step <= top), step, 0.5 * (floor + top))
    return t


@triton.jit
def _middle(a, b):
    """Between two non-negative numbers, about halfway on a logarithmic scale: halfway between their bits."""
    return ((a.to(tl.int32, bitcast=True) + b.to(tl.int32, bitcast=True)) >> 1).to(tl.float32, bitcast=True)


@triton.jit
def threshold_range(low, high, width, need, t):
    """A range that contains the value of the class between its bounds (``kernels/lower/open_classes.py``).

    In float32: sums are trusted to ``ROUNDED_SUM`` and the range is widened by what rounding may have moved. The search begins
    near the water level t; only what a sum has shown becomes an end of the range.
    """
    least = tl.zeros_like(need) + DECADES
    most = tl.zeros_like(need) + 1.0
    below = tl.minimum(tl.maximum(t, DECADES), 1.0)
    above = most
    x = _middle(below, most)
    y = tl.maximum(below * 0.015625, DECADES)
    for _ in range(HALVINGS):
        # A product and not a choice: it becomes one instruction with the sum.
        at_upper, at_lower = row_sums((high > x).to(tl.float32) * width, (low > y).to(tl.float32) * width)
        short = at_upper * ROUNDED_SUM < need
        most = tl.where(short, x, most)
        below = tl.where(short, below, x)
        heavy = at_lower > need * ROUNDED_SUM
        least = tl.where(heavy, y, least)
        above = tl.where(heavy, above, y)
        x = _middle(below, most)
        y = _middle(least, above)
    least = tl.where(least > DECADES, least.to(tl.float64) * (1.0 / ROUNDED), 0.0)
    return least, most.to(tl.float64) * ROUNDED
