# mypy: ignore-errors
"""``bounds.py`` for probabilities in float32 or narrower: half the registers, and float64 only where digits are lost.

A member's row is summed in float64; its probabilities, divided by the sum, are rounded to float32, the dtype they are returned
in. For the certificate of the lower entropy the bounds are moved outwards by as much as rounding can have moved them
(``OUTWARDS``): the set that is searched contains the members' own, unless these agree in every digit. Level and threshold
are found in float32; entropies and masses are sums of float64 terms. What is rounded are probabilities: entropies come out to
some 2e-6 bits, of a row however small its own entropy is.
"""

import triton
import triton.language as tl

from credalens.device.phi import phi_single
from credalens.device.tiles import list_wide, places, rough_level, row_most, row_sum, row_sums, threshold_range

__all__ = ["describe_single"]

EXACT = tl.constexpr(1e-14)  # a row this close to one is left as it is
NO_WIDTH = tl.constexpr(1e-15)  # a sum of widths below this is rounding: the members agree
OUTWARDS = tl.constexpr(6.02e-8)  # a little more than 2^-24: adds one to the last digit of any float32, and leaves zero
LAST_DIGIT = tl.constexpr(2e-7)
SLACK = tl.constexpr(1e-7)  # mass that is corrected for, to the square of it
ROUNDS = tl.constexpr(64)
PHI_BELOW = tl.constexpr(1.0 - 1e-8)  # phi_single may be too large by half of this
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
def _water_level(low, high, active, classes):
    """The root t of sum clip(t, l, u) = 1 to the last digit: safeguarded Newton steps, the sums in float64 at the end."""
    t = rough_level(low, high, classes)
    floor = tl.zeros_like(t)
    top = floor + 1.0
    moving = active.to(tl.int32)
    rounds = 0
    while (tl.max(moving) > 0) & (rounds < ROUNDS):
        clipped = _clip(t, low, high)
        excess = (row_sum(clipped.to(tl.float64)) - 1.0).to(tl.float32)
        free = row_sum(tl.where(clipped == t, 1.0, 0.0))
        top = tl.where(excess > 0.0, t, top)
        floor = tl.where(excess > 0.0, floor, t)
        step = t - excess / tl.maximum(free, 1.0)
        step = tl.where((free > 0.0) & (step >= floor) & (step <= top), step, 0.5 * (floor + top))
        moving = tl.where((tl.abs(excess) <= SLACK) | (tl.abs(step - t) <= LAST_DIGIT * t), 0, moving)
        t = tl.where(moving > 0, step, t)
        rounds += 1
    return t


@triton.jit
def _upper_entropy(low, high, t, agree, full):
    """Sum of phi(clip(t, l, u)) in bits, corrected for the mass that rounding leaves over: phi'(t) times that mass.

    Where the rounded bounds are ``full``, they have no level: then all classes are scaled alike.
    """
    p = _clip(t, low, high)
    entropy, mass = row_sums(phi_single(p), p.to(tl.float64))
    information = tl.where(full, entropy, -tl.log2(tl.maximum(t, 1e-37)).to(tl.float64))
    return tl.where(agree, entropy, entropy - (information - BITS) * (mass - 1.0))


@triton.jit(do_not_specialize=["rows", "count"])
def describe_single(
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
    ROWS: tl.constexpr,
    BLOCKS: tl.constexpr,
    BLOCK: tl.constexpr,
    MULTIPLE: tl.constexpr,
):
    """What ``describe_rows`` writes, from members (count, rows, classes) that are probabilities."""
    classes = (classes // MULTIPLE) * MULTIPLE
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None, None]
    k = (tl.arange(0, BLOCKS) * BLOCK)[None, :, None] + tl.arange(0, BLOCK)[None, None, :]
    real = row < rows
    inside = real & (k < classes)
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
    good = (valid > 0) & (row_most(-low) <= 0.0)
    tl.store(bad + tl.zeros_like(row), 1, mask=real & (good == 0))

    below, above = row_sums(low.to(tl.float64), high.to(tl.float64))
    spread = above - below
    agree = (spread > NO_WIDTH) == 0
    alpha = (1.0 - below).to(tl.float32) / tl.where(agree, 1.0, spread).to(tl.float32)
    alpha = tl.where(agree, 0.0, tl.minimum(tl.maximum(alpha, 0.0), 1.0))
    tl.store(lower + at, low, mask=inside)
    tl.store(upper + at, high, mask=inside)
    tl.store(probability + at, low + alpha * (high - low), mask=inside)
    tl.store(mean + at, average * (1.0 / tl.cast(count, tl.float32)), mask=inside)

    full = (below >= 1.0) | (above <= 1.0)
    t = _water_level(low, high, good & (full == 0), classes)
    tl.store(total + row, _upper_entropy(low, high, t, agree, full), mask=real)

    moved = tl.where(agree, 0.0, tl.full(agree.shape, OUTWARDS, tl.float32))
    below -= row_sum(low - tl.fma(low, -moved, low)).to(tl.float64)
    low = tl.fma(low, -moved, low)
    high = tl.fma(high, moved, high)
    width = high - low
    least, most = threshold_range(low, high, width, (1.0 - below).to(tl.float32))
    is_open = (width > 0.0) & good & (high >= least.to(tl.float32))
    is_up = is_open & (low > most.to(tl.float32))
    is_open = is_open & (low <= most.to(tl.float32))
    y = tl.where(is_up, high, low)
    place, number = places(is_open)
    tl.store(core_low + begin + place, low, mask=is_open)
    tl.store(core_high + begin + place, high, mask=is_open)
    tl.store(size + row, number, mask=real)
    list_wide(wide, numbers, rows, row, number)
    # The phi last: by now the masks and bounds have left their registers.
    lowest, taken = row_sums(phi_single(y), y.to(tl.float64))
    tl.store(base + row, tl.where(agree, lowest, lowest * PHI_BELOW), mask=real)
    tl.store(need + row, 1.0 - taken, mask=real)
