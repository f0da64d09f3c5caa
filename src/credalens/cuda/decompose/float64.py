# mypy: ignore-errors
"""One pass over the members in float64: validation, bounds, both point predictions, upper entropy, and the open classes.

A program holds ROWS rows in registers and reads each value once, as a tile (rows, blocks of classes, classes of a block),
so that a sum over the classes of a row crosses few threads. The arithmetic is that of ``kernels/members.py``,
``kernels/upper.py`` and ``kernels/lower/open_classes.py``; root searches start in float32 where that costs no exactness.
"""

import triton
import triton.language as tl

from credalens.cuda.counters import INVALID, MARK, list_many_open
from credalens.cuda.phi import phi
from credalens.cuda.tiles import (
    EXACT,
    LOGITS,
    NO_WIDTH,
    positions,
    rough_level,
    row_max,
    row_sum,
    row_sums,
    swings,
    threshold_range,
)

SLACK = tl.constexpr(1e-15)  # mass below this is rounding
LAST_DIGIT = tl.constexpr(4e-16)


@triton.jit
def _clip(t, low, high):
    """t where it is between low and high, else the nearer of them."""
    t = tl.where(low > t, low, t)
    return tl.where(high < t, high, t)


@triton.jit
def _distribution(x, inside, tolerance, KIND: tl.constexpr):
    """Rows of one member as float64 distributions, and which of them sum to one. Signs are left to the caller."""
    if KIND == LOGITS:
        x = tl.where(inside, x, -float("inf"))
        top = row_max(x)
        good = (top > -float("inf")) & (top < float("inf")) & (row_max((x != x).to(tl.int32)) == 0)
        p = tl.exp(x - tl.where(good, top, 0.0))
        return p * (1.0 / row_sum(p)), good
    e = 1.0 - row_sum(x)
    good = tl.abs(e) <= tolerance
    # 1 / (1 - e) = (1 + e) (1 + e^2) (1 + e^4) (1 + e^8) ...: a tolerance is at most 0.05. A division would branch.
    two = e * e
    four = two * two
    scale = (1.0 + e) * (1.0 + two) * (1.0 + four) * (1.0 + four * four)
    return x * tl.where(tl.abs(e) <= EXACT, 1.0, scale), good


@triton.jit
def _water_level(low, high, inside, active, rough, classes):
    """The root t of s(t) = sum clip(t, l, u) - 1: safeguarded Newton steps, which end where s is linear around t.

    The next t is the root for the classes that t leaves between their bounds: exact if they are the right ones.
    """
    t = rough.to(tl.float64)
    floor = tl.zeros_like(t)
    top = floor + 1.0
    before = floor
    moving = active.to(tl.int32)
    rounds = 2 * classes + 64
    while (tl.max(moving) > 0) & (rounds > 0):
        above = inside & (low >= t)
        below = inside & (high <= t) & (low < t)
        a, b = row_sums(tl.where(above, low, 0.0), tl.where(below, high, 0.0))
        free = classes - row_sum(tl.where(above | below, 1, 0)).to(tl.float64)
        excess = a + b + free * t - 1.0
        over = excess > 0.0
        top = tl.where(over, t, top)
        floor = tl.where(over, floor, t)
        step = (1.0 - a - b) / tl.maximum(free, 1.0)
        still = (free > 0.0) & (tl.abs(step - t) <= t * LAST_DIGIT)
        moving = tl.where((tl.abs(excess) <= SLACK) | still, 0, moving)
        step = tl.where((free > 0.0) & (step >= floor) & (step <= top), step, 0.5 * (floor + top))
        step = tl.where(swings(excess, before), 0.5 * (floor + top), step)
        t = tl.where(moving > 0, step, t)
        before = excess
        rounds -= 1
    return t


@triton.jit(do_not_specialize=["rows", "count", "tolerance"])
def decompose_float64(
    source, lower, upper, probability, mean, total, core_low, core_high, size, need, base, counters, many_open,
    rows, classes, count, tolerance, KIND: tl.constexpr, ROWS: tl.constexpr, BLOCKS: tl.constexpr,
    BLOCK: tl.constexpr, MULTIPLE: tl.constexpr,
):  # fmt: skip
    """Everything but the lower entropy, from members (count, rows, classes).

    Writes the caller's arrays, the upper entropy in bits, and what the lower entropy of a row needs: the bounds of its open
    classes, their number, the mass they share (``need``) and the entropy with all of them at their lower bounds
    (``base``). Rows with many open classes go to the lists ``many_open``. A row that is not a distribution is marked
    in ``counters``, which must be zero before. ``classes`` is a multiple of MULTIPLE.
    """
    classes = (classes // MULTIPLE) * MULTIPLE
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None, None]
    k = (tl.arange(0, BLOCKS) * BLOCK)[None, :, None] + tl.arange(0, BLOCK)[None, None, :]
    real = row < rows
    inside = real & (k < classes)
    begin = row * classes
    at = begin + k
    source += at

    low = tl.where(inside, float("inf"), tl.zeros(at.shape, tl.float64))
    high = tl.zeros(at.shape, tl.float64)
    average = tl.zeros(at.shape, tl.float64)
    valid = real.to(tl.int32)
    stride = tl.cast(rows, tl.int64) * classes
    # Two members ahead: sums that wait for other warps would keep the next loads waiting too.
    members = tl.zeros_like(k) + count
    x = tl.load(source, mask=inside, other=0.0)
    following = tl.load(source + stride, mask=inside & (members > 1), other=0.0)
    for n in range(count):
        source += stride
        after = tl.load(source + stride, mask=inside & (n + 2 < members), other=0.0)
        p, sums = _distribution(x.to(tl.float64), inside, tolerance, KIND)
        x = following
        following = after
        low = tl.where(p < low, p, low)
        high = tl.where(p > high, p, high)
        average += p
        valid = tl.where(sums, valid, 0)
    good = (valid > 0) & (row_max((low < 0.0).to(tl.int32)) == 0)
    tl.store(counters + MARK + tl.zeros_like(row), INVALID, mask=real & (good == 0))

    width = high - low
    below, spread = row_sums(low, width)
    alpha = (1.0 - below) / tl.where(spread > NO_WIDTH, spread, 1.0)
    alpha = tl.where(spread > NO_WIDTH, tl.minimum(tl.maximum(alpha, 0.0), 1.0), 0.0)
    kind = lower.dtype.element_ty
    tl.store(lower + at, low.to(kind), mask=inside)
    tl.store(upper + at, high.to(kind), mask=inside)
    tl.store(probability + at, (low + alpha * width).to(kind), mask=inside)
    tl.store(mean + at, (average * (1.0 / tl.cast(count, tl.float64))).to(kind), mask=inside)

    left = 1.0 - below
    low32 = low.to(tl.float32)
    high32 = high.to(tl.float32)
    t = _water_level(low, high, inside, good, rough_level(low32, high32, classes), classes)
    least, most = threshold_range(low32, high32, width.to(tl.float32), left.to(tl.float32), t.to(tl.float32))
    is_open = inside & (width > 0.0) & good & (high >= least)
    is_up = is_open & (low > most)
    is_open = is_open & (low <= most)
    highest, lowest = row_sums(phi(_clip(t, low, high)), phi(tl.where(is_up, high, low)))
    left -= row_sum(tl.where(is_up, width, 0.0))
    tl.store(total + row, highest, mask=real)
    tl.store(base + row, lowest, mask=real)
    tl.store(need + row, left, mask=real)
    place, number = positions(is_open)
    tl.store(core_low + begin + place, low, mask=is_open)
    tl.store(core_high + begin + place, high, mask=is_open)
    tl.store(size + row, number, mask=real)
    list_many_open(many_open, counters, rows, row, number)
