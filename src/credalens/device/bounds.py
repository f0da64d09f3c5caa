# mypy: ignore-errors
"""One pass over the members: validation, bounds, both point predictions, upper entropy, and the open classes.

Every program takes ``ROWS`` rows of at most ``WIDTH`` classes into registers and reads each value once. The arithmetic is
that of ``core/kernels`` (``bounds.py``, ``upper.py``, ``knapsack.py``) in float64; searches start in float32 where that
costs no exactness.
"""

import triton
import triton.language as tl

from credalens.device.nodes import ALIGNED
from credalens.device.phi import phi

__all__ = ["describe_rows"]

EXACT = tl.constexpr(1e-14)  # a row this close to one is left as it is
NO_WIDTH = tl.constexpr(1e-15)  # a sum of widths below this is rounding: the members agree
ROUGH_STEPS = tl.constexpr(6)  # towards the water level in float32
DECADES = tl.constexpr(1e-12)
HALVINGS = tl.constexpr(6)
ROUNDED_SUM = tl.constexpr(1.00001)  # more than a float32 sum of positive terms can be off, relatively
ROUNDED = tl.constexpr(1.0000002)  # more than a float32 can be off

LOGITS = tl.constexpr(1)


@triton.jit
def _distribution(x, inside, tolerance, KIND: tl.constexpr):
    """Rows of one member as float64 distributions, and which of them sum to one. Signs are left to the caller."""
    if KIND == LOGITS:
        x = tl.where(inside, x, -float("inf"))
        top = tl.max(x, 1)
        good = (top > -float("inf")) & (top < float("inf")) & (tl.min(tl.where(x == x, 1, 0), 1) > 0)
        p = tl.exp(x - tl.where(good, top, 0.0)[:, None])
        return p * (1.0 / tl.sum(p, 1))[:, None], good
    total = tl.sum(x, 1)
    good = tl.abs(total - 1.0) <= tolerance
    scale = tl.where(tl.abs(total - 1.0) <= EXACT, 1.0, 1.0 / tl.where(good, total, 1.0))
    return x * scale[:, None], good


@triton.jit
def _rough_level(low, high, classes):
    """Where the water level is, nearly: some safeguarded Newton steps in float32."""
    below = tl.sum(low, 1) * 0.0
    above = below + 1.0
    t = below + 1.0 / classes
    for _ in range(ROUGH_STEPS):
        level = t[:, None]
        excess = tl.sum(tl.minimum(tl.maximum(low, level), high), 1) - 1.0
        free = tl.sum(((low < level) & (high > level)).to(tl.float32), 1)
        above = tl.where(excess > 0.0, t, above)
        below = tl.where(excess > 0.0, below, t)
        step = t - excess / tl.maximum(free, 1.0)
        t = tl.where((step > below) & (step < above), step, 0.5 * (below + above))
    return t


@triton.jit
def _water_level(low, high, inside, active, rough, classes):
    """The root t of s(t) = sum clip(t, l, u) - 1, by fixing variables (``core/kernels/upper.py``)."""
    t = rough.to(tl.float64)
    low_sum = tl.zeros_like(t)
    high_sum = tl.zeros_like(t)
    lows = tl.zeros_like(t)
    highs = tl.zeros_like(t)
    moving = active.to(tl.int32)
    rounds = 2 * classes + 2
    while (tl.max(moving, 0) > 0) & (rounds > 0):
        level = t[:, None]
        above = inside & (low >= level)
        below = inside & (high <= level) & (low < level)
        a = tl.sum(tl.where(above, low, 0.0), 1)
        b = tl.sum(tl.where(below, high, 0.0), 1)
        both = tl.sum(tl.where(above, 65536, tl.where(below, 1, 0)), 1)
        at_lower = (both // 65536).to(tl.float64)
        at_upper = (both % 65536).to(tl.float64)
        excess = a + b + (classes - at_lower - at_upper) * t - 1.0
        over = excess > 0.0
        low_sum = tl.where(over, a, low_sum)
        lows = tl.where(over, at_lower, lows)
        high_sum = tl.where(over, high_sum, b)
        highs = tl.where(over, highs, at_upper)
        free = classes - lows - highs
        step = (1.0 - low_sum - high_sum) / tl.where(free > 0.0, free, 1.0)
        moving = tl.where((excess == 0.0) | (free <= 0.0) | (step == t), 0, moving)
        t = tl.where(moving > 0, step, t)
        rounds -= 1
    return t


@triton.jit
def _threshold_range(low, high, width, need):
    """A range that contains the value of the class between its bounds (``core/kernels/knapsack.py``).

    In float32: sums are trusted to ``ROUNDED_SUM`` and the range is widened by what rounding may have moved.
    """
    top = tl.max(high, 1)
    most = top
    a = DECADES * top
    b = top
    for _ in range(HALVINGS):
        x = tl.sqrt(a * b)
        short = tl.sum(tl.where(high > x[:, None], width, 0.0), 1) * ROUNDED_SUM < need
        most = tl.where(short, x, most)
        b = tl.where(short, x, b)
        a = tl.where(short, a, x)
    a = DECADES * top
    b = most
    least = tl.zeros_like(top)
    for _ in range(HALVINGS):
        x = tl.sqrt(a * b)
        heavy = tl.sum(tl.where(low > x[:, None], width, 0.0), 1) > need * ROUNDED_SUM
        least = tl.where(heavy, x, least)
        a = tl.where(heavy, x, a)
        b = tl.where(heavy, b, x)
    return least.to(tl.float64) / ROUNDED, most.to(tl.float64) * ROUNDED


@triton.jit
def _list_wide(lists, numbers, rows, row, number):
    """Add the rows with more than 64, 256 or 1024 open classes to a list (4, rows) each; the first is not used."""
    which = (number > 64).to(tl.int32) + (number > 256).to(tl.int32) + (number > 1024).to(tl.int32)
    place = tl.atomic_add(numbers + ALIGNED * which, 1, mask=which > 0)
    tl.store(lists + tl.cast(rows, tl.int64) * which + place, row, mask=which > 0)


@triton.jit(do_not_specialize=["rows", "count"])
def describe_rows(
    source,
    lower,
    upper,
    probability,
    mean,
    total,
    core_low,
    core_high,
    size,
    need,
    base,
    bad,
    wide,
    numbers,
    rows,
    classes,
    count,
    tolerance,
    KIND: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Everything that follows from one look at the members (count, rows, classes).

    Writes the caller's arrays, the upper entropy in bits, and for the lower entropy of every row: the bounds of its open
    classes, their number, the mass they share (``need``) and the entropy with all of them at their lower bounds
    (``base``). Rows with many open classes go to the lists ``wide``. ``bad`` becomes 1 if a row is not a distribution.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, WIDTH)
    real = row < rows
    inside = real[:, None] & (k < classes)[None, :]
    begin = (row * classes)[:, None]
    at = begin + k[None, :]
    source += at

    low = tl.where(inside, float("inf"), tl.zeros(at.shape, tl.float64))
    high = tl.zeros(at.shape, tl.float64)
    average = tl.zeros(at.shape, tl.float64)
    valid = real.to(tl.int32)
    stride = tl.cast(rows, tl.int64) * classes
    for _ in range(count):
        x = tl.load(source, mask=inside, other=0.0).to(tl.float64)
        source += stride
        p, sums = _distribution(x, inside, tolerance, KIND)
        low = tl.minimum(low, p)
        high = tl.maximum(high, p)
        average += p
        valid = tl.where(sums, valid, 0)
    good = (valid > 0) & (tl.min(low, 1) >= 0.0)
    tl.store(bad + tl.zeros_like(row), 1, mask=real & (good == 0))

    below = tl.sum(low, 1)
    width = high - low
    spread = tl.sum(width, 1)
    alpha = (1.0 - below) / tl.where(spread > NO_WIDTH, spread, 1.0)
    alpha = tl.where(spread > NO_WIDTH, tl.minimum(tl.maximum(alpha, 0.0), 1.0), 0.0)
    kind = lower.dtype.element_ty
    tl.store(lower + at, low.to(kind), mask=inside)
    tl.store(upper + at, high.to(kind), mask=inside)
    tl.store(probability + at, (low + alpha[:, None] * width).to(kind), mask=inside)
    tl.store(mean + at, (average * (1.0 / tl.cast(count, tl.float64))).to(kind), mask=inside)

    low32 = low.to(tl.float32)
    high32 = high.to(tl.float32)
    t = _rough_level(low32, high32, classes)
    t = _water_level(low, high, inside, good, t, classes)
    flattest = tl.minimum(tl.maximum(low, t[:, None]), high)
    tl.store(total + row, tl.sum(phi(flattest), 1), mask=real)

    left = 1.0 - below
    is_open = inside & (width > 0.0) & good[:, None]
    least, most = _threshold_range(low32, high32, width.to(tl.float32), left.to(tl.float32))
    is_open = is_open & (high >= least[:, None])
    is_up = is_open & (low > most[:, None])
    is_open = is_open & (low <= most[:, None])
    left -= tl.sum(tl.where(is_up, width, 0.0), 1)
    place = begin + tl.cumsum(is_open.to(tl.int32), 1) - 1
    tl.store(core_low + place, low, mask=is_open)
    tl.store(core_high + place, high, mask=is_open)
    number = tl.sum(is_open.to(tl.int32), 1)
    tl.store(size + row, number, mask=real)
    _list_wide(wide, numbers, rows, row, number)
    tl.store(need + row, left, mask=real)
    tl.store(base + row, tl.sum(phi(tl.where(is_up, high, low)), 1), mask=real)
