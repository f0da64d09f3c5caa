# mypy: ignore-errors
"""``float64.py`` for probabilities in float32 or narrower: half the registers, and float64 only where digits are lost.

A member's row is summed in float64; its probabilities, divided by the sum, are rounded to float32, the dtype of the results.
For the certificate of the lower entropy the bounds are moved outwards by as much as rounding can have moved them
(``OUTWARDS``): the set that is searched contains the members' own, unless these agree in every digit. Level and threshold
are found in float32; entropies and masses are summed in float64. The rounding of the probabilities leaves entropies exact
to about 2e-6 bits.
"""

import triton
import triton.language as tl

from credalens.cuda.counters import INVALID, MARK, list_many_open
from credalens.cuda.phi import phi_parts
from credalens.cuda.tiles import (
    EXACT,
    NO_WIDTH,
    lane_sums,
    positions,
    row_sum,
    row_sums,
    swings,
    threshold_range,
)

OUTWARDS = tl.constexpr(6.02e-8)  # a little more than 2^-24: adds one to the last digit of any float32, and leaves zero
LAST_DIGIT = tl.constexpr(2e-7)
SLACK = tl.constexpr(1e-6)  # of the mass to share: the entropy is corrected for it, to the square of it
ROUNDS = tl.constexpr(64)
ROUNDED_PHI = tl.constexpr(5e-7)  # more than the float32 parts of an entropy are off, next to their size
BITS = tl.constexpr(1.4426950408889634)  # 1 / ln 2


@triton.jit
def _gain(x, tolerance):
    """The g that makes x + g x sum to one, in float32, and which rows sum to one closely enough."""
    e = 1.0 - row_sum(x.to(tl.float64))
    # 1 / (1 - e) - 1 = e (1 + e) (1 + e^2) (1 + e^4) ...: a tolerance is at most 0.05. A division would branch.
    two = e * e
    g = e * (1.0 + e) * (1.0 + two) * (1.0 + two * two)
    return tl.where(tl.abs(e) <= EXACT, 0.0, g).to(tl.float32), tl.abs(e) <= tolerance


@triton.jit
def _clip(t, low, high):
    return tl.minimum(tl.maximum(low, t), high)


@triton.jit
def _water_level(low, high, need, active, classes):
    """The root t of sum (clip(t, l, u) - l) = need, nearly: safeguarded Newton steps in float32.

    The sum is of what is raised, so that its rounding is small next to ``need`` and not next to one.
    """
    t = need * (8.0 / classes)
    floor = tl.zeros_like(t)
    top = floor + 1.0
    before = floor
    moving = active.to(tl.int32)
    rounds = 0
    while (tl.max(moving) > 0) & (rounds < ROUNDS):
        clipped = _clip(t, low, high)
        raised, free = row_sums(clipped - low, tl.where(clipped == t, 1.0, 0.0))
        excess = raised - need
        top = tl.where(excess > 0.0, t, top)
        floor = tl.where(excess > 0.0, floor, t)
        step = t - excess / tl.maximum(free, 1.0)
        moving = tl.where((tl.abs(excess) <= need * SLACK) | (tl.abs(step - t) <= t * LAST_DIGIT), 0, moving)
        step = tl.where((free > 0.0) & (step >= floor) & (step <= top), step, 0.5 * (floor + top))
        step = tl.where(swings(excess, before), 0.5 * (floor + top), step)
        t = tl.where(moving > 0, step, t)
        before = excess
        rounds += 1
    return t


@triton.jit
def _entropy(p):
    """Sum of phi(p) in bits, and of p, in float64 but for the float32 parts of four classes of a thread."""
    large, small = phi_parts(p)
    small = tl.sum(tl.reshape(small, (p.shape[0], p.shape[1] // 4, 4, p.shape[2])), 2).to(tl.float64)
    entropy = tl.sum(large, 1, keep_dims=True) * 2.0**-23 + tl.sum(small, 1, keep_dims=True)
    return lane_sums(entropy, tl.sum(p.to(tl.float64), 1, keep_dims=True))


@triton.jit
def _upper_entropy(low, high, t, agree, full):
    """Sum of phi(clip(t, l, u)) in bits, corrected for the mass that is left over: phi'(t) times that mass.

    Where the rounded bounds are ``full``, they have no level: then all classes are scaled alike.
    """
    entropy, mass = _entropy(_clip(t, low, high))
    information = tl.where(full, entropy, -tl.log2(tl.maximum(t, 1e-37)).to(tl.float64))
    return tl.where(agree, entropy, entropy - (information - BITS) * (mass - 1.0))


@triton.jit
def _store(to, x, mask):
    """Store to positions that are not contiguous: Triton then gives the threads to the first axis.

    With the classes of a block on it every value is stored by the thread that has it.
    """
    tl.store(tl.permute(to, (2, 0, 1)), tl.permute(x, (2, 0, 1)), mask=tl.permute(mask, (2, 0, 1)))


@triton.jit(do_not_specialize=["rows", "classes", "count", "tolerance"])
def decompose_float32(
    source, lower, upper, probability, mean, total, core_low, core_high, size, need, base, counters, many_open,
    rows, classes, count, tolerance, ROWS: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr,
    CLASSES: tl.constexpr,
):  # fmt: skip
    """What ``decompose_float64`` writes, from members (count, rows, classes) that are probabilities.

    CLASSES is ``classes`` again: as a constant it leaves a mask to the last block only; where rows begin Triton must not
    know it, or a thread would get classes next to each other (``_store``).
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None, None]
    k = (tl.arange(0, BLOCKS) * BLOCK)[None, :, None] + tl.arange(0, BLOCK)[None, None, :]
    real = row < rows
    inside = k < CLASSES
    if ROWS > 1:  # else there is a program for every row
        inside = inside & real
    begin = row * classes
    at = begin + k
    source += at

    low = tl.full(at.shape, float("inf"), tl.float32)
    high = tl.zeros(at.shape, tl.float32)
    average = tl.zeros(at.shape, tl.float32)
    valid = real.to(tl.int32)
    stride = tl.cast(rows, tl.int64) * classes
    for _ in range(count):
        x = tl.load(source, mask=inside, other=0.0).to(tl.float32)
        source += stride
        g, sums = _gain(x, tolerance)
        p = tl.fma(x, g, x)
        low = tl.minimum(low, p)
        high = tl.maximum(high, p)
        average += p
        valid = tl.where(sums, valid, 0)

    width = high - low
    spread = tl.sum(width, 1, keep_dims=True).to(tl.float64)
    # A negative probability makes the row's sum of widths NaN, which is one reduction less.
    spread = tl.where(tl.min(low, 1, keep_dims=True) >= 0.0, spread, float("nan"))
    below, spread = lane_sums(tl.sum(low.to(tl.float64), 1, keep_dims=True), spread)
    good = (valid > 0) & (spread >= 0.0)
    tl.store(counters + MARK + tl.zeros_like(row), INVALID, mask=real & (good == 0))

    agree = (spread > NO_WIDTH) == 0
    left = (1.0 - below).to(tl.float32)
    alpha = left / tl.where(agree, 1.0, spread).to(tl.float32)
    alpha = tl.where(agree, 0.0, tl.minimum(tl.maximum(alpha, 0.0), 1.0))
    tl.store(lower + at, low, mask=inside)
    tl.store(upper + at, high, mask=inside)
    tl.store(probability + at, low + alpha * width, mask=inside)
    tl.store(mean + at, average * (1.0 / tl.cast(count, tl.float32)), mask=inside)

    full = (left <= 0.0) | (spread <= left)
    t = _water_level(low, high, left, good & (full == 0), CLASSES)
    tl.store(total + row, _upper_entropy(low, high, t, agree, full), mask=real)

    moved = tl.where(agree, 0.0, tl.full(agree.shape, OUTWARDS, tl.float32))
    outer = tl.fma(low, -moved, low)
    below -= row_sum(low - outer).to(tl.float64)
    low = outer
    high = tl.fma(high, moved, high)
    width = high - low
    least, most = threshold_range(low, high, width, (1.0 - below).to(tl.float32), t)
    least = tl.where(good, least, float("inf")).to(tl.float32)
    most = most.to(tl.float32)
    is_open = (width > 0.0) & (high >= least) & (low <= most)
    y = tl.where(low > most, high, low)
    place, number = positions(is_open)
    _store(core_low + begin + place, low, is_open)
    _store(core_high + begin + place, high, is_open)
    tl.store(size + row, number, mask=real)
    list_many_open(many_open, counters, rows, row, number)
    # The phi last: by now the masks and bounds have left their registers.
    lowest, taken = _entropy(y)
    certain = lowest - tl.minimum(lowest, 0.5 * taken) * ROUNDED_PHI
    tl.store(base + row, tl.where(agree, lowest, certain), mask=real)
    tl.store(need + row, 1.0 - taken, mask=real)
