# mypy: ignore-errors
"""``float64.py`` for few classes: one thread a row, and loops over the classes instead of tiles.

The bounds of a row's classes lie ``rows`` apart in ``core_low`` and ``core_high``, so that neighbouring threads read
neighbouring values. Only the bounds are found with one thread a value: then members and results are read and written in
order too.
"""

import triton
import triton.language as tl

from credalens.cuda.counters import COUNTERS
from credalens.cuda.decompose.tiles import EXACT, LOGITS, NO_WIDTH
from credalens.cuda.phi import phi


@triton.jit
def _member_scale(source, real, classes, tolerance, KIND: tl.constexpr, ROWS: tl.constexpr):
    """(shift, scale, valid): a member's distribution is x * scale, or exp(x - shift) * scale for logits."""
    total = tl.zeros((ROWS,), tl.float64)
    shift = tl.zeros((ROWS,), tl.float64)
    if KIND == LOGITS:
        shift += -float("inf")
        for c in range(classes):
            x = tl.load(source + c, mask=real, other=0.0).to(tl.float64)
            shift = tl.maximum(shift, x)
            total += tl.where(x == x, 0.0, 1.0)
        good = (shift > -float("inf")) & (shift < float("inf")) & (total == 0.0)
        shift = tl.where(good, shift, 0.0)
        total = tl.zeros((ROWS,), tl.float64)
        for c in range(classes):
            total += tl.exp(tl.load(source + c, mask=real, other=0.0).to(tl.float64) - shift)
        return shift, 1.0 / tl.where(good, total, 1.0), good
    least = tl.zeros((ROWS,), tl.float64)
    for c in range(classes):
        x = tl.load(source + c, mask=real, other=0.0).to(tl.float64)
        total += x
        least = tl.minimum(least, x)
    good = (least >= 0.0) & (tl.abs(total - 1.0) <= tolerance)
    scale = tl.where(tl.abs(total - 1.0) <= EXACT, 1.0, 1.0 / tl.where(good, total, 1.0))
    return shift, scale, good


@triton.jit
def _bounds(
    source,
    lower,
    upper,
    mean,
    core_low,
    core_high,
    scales,
    rows,
    classes,
    count,
    KIND: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Bounds and average of every class of a program's rows: ROWS neighbouring values at a time."""
    kind = lower.dtype.element_ty
    share = 1.0 / tl.cast(count, tl.float64)
    start = tl.program_id(0).to(tl.int64) * ROWS
    for step in range(classes):
        value = step * ROWS + tl.arange(0, ROWS)
        row = start + value // classes
        here = row < rows
        at = start * classes + value
        low = tl.full((ROWS,), float("inf"), tl.float64)
        high = tl.zeros((ROWS,), tl.float64)
        average = tl.zeros((ROWS,), tl.float64)
        for n in range(count):
            x = tl.load(source + n * rows * classes + at, mask=here, other=0.0).to(tl.float64)
            if KIND == LOGITS:
                x = tl.exp(x - tl.load(scales + (count + n) * rows + row, mask=here, other=0.0))
            p = x * tl.load(scales + n * rows + row, mask=here, other=0.0)
            low = tl.minimum(low, p)
            high = tl.maximum(high, p)
            average += p
        place = (value % classes) * rows + row
        tl.store(core_low + place, low, mask=here)
        tl.store(core_high + place, high, mask=here)
        tl.store(lower + at, low.to(kind), mask=here)
        tl.store(upper + at, high.to(kind), mask=here)
        tl.store(mean + at, (average * share).to(kind), mask=here)


@triton.jit
def _water_level(core_low, core_high, rows, active, classes, ROWS: tl.constexpr):
    """The root t of s(t) = sum clip(t, l, u) - 1, by fixing variables (``kernels/upper.py``)."""
    t = 1.0 / (tl.zeros((ROWS,), tl.float64) + classes)
    low_sum = tl.zeros((ROWS,), tl.float64)
    high_sum = tl.zeros((ROWS,), tl.float64)
    lows = tl.zeros((ROWS,), tl.float64)
    highs = tl.zeros((ROWS,), tl.float64)
    moving = active
    rounds = 2 * classes + 2
    while (tl.max(moving.to(tl.int32), 0) > 0) & (rounds > 0):
        a = tl.zeros((ROWS,), tl.float64)
        b = tl.zeros((ROWS,), tl.float64)
        at_lower = tl.zeros((ROWS,), tl.float64)
        at_upper = tl.zeros((ROWS,), tl.float64)
        for c in range(classes):
            low = tl.load(core_low + c * rows, mask=moving, other=0.0)
            high = tl.load(core_high + c * rows, mask=moving, other=0.0)
            above = low >= t
            below = (high <= t) & (low < t)
            a += tl.where(above, low, 0.0)
            b += tl.where(below, high, 0.0)
            at_lower += tl.where(above, 1.0, 0.0)
            at_upper += tl.where(below, 1.0, 0.0)
        excess = a + b + (classes - at_lower - at_upper) * t - 1.0
        over = excess > 0.0
        low_sum = tl.where(over, a, low_sum)
        lows = tl.where(over, at_lower, lows)
        high_sum = tl.where(over, high_sum, b)
        highs = tl.where(over, highs, at_upper)
        free = classes - lows - highs
        step = (1.0 - low_sum - high_sum) / tl.where(free > 0.0, free, 1.0)
        moving = moving & (excess != 0.0) & (free > 0.0) & (step != t)
        t = tl.where(moving, step, t)
        rounds -= 1
    return t


@triton.jit(do_not_specialize=["rows", "count", "tolerance"])
def decompose_few_classes(
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
    counters,
    scales,
    rows,
    classes,
    count,
    tolerance,
    KIND: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Everything but the lower entropy; the arguments are those of ``decompose_float64``.

    ``scales`` (1 or 2, count, rows) is scratch memory for the scale (and shift) that makes a member's row a distribution.
    Sets all ``counters`` to zero for the kernels that follow. The upper entropy of a row that is not a distribution is NaN.
    """
    if tl.program_id(0) == 0:
        tl.store(counters + tl.arange(0, COUNTERS), tl.zeros((COUNTERS,), tl.int32))
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    real = row < rows
    rows = tl.cast(rows, tl.int64)
    stride = rows * classes
    good = real
    for n in range(count):
        shift, scale, valid = _member_scale(source + n * stride + row * classes, real, classes, tolerance, KIND, ROWS)
        tl.store(scales + n * rows + row, scale, mask=real)
        if KIND == LOGITS:
            tl.store(scales + (count + n) * rows + row, shift, mask=real)
        good = good & valid

    tl.debug_barrier()
    _bounds(source, lower, upper, mean, core_low, core_high, scales, rows, classes, count, KIND, ROWS)
    tl.debug_barrier()

    core_low += row
    core_high += row
    below = tl.zeros((ROWS,), tl.float64)
    spread = tl.zeros((ROWS,), tl.float64)
    for c in range(classes):
        low = tl.load(core_low + c * rows, mask=real, other=0.0)
        below += low
        spread += tl.load(core_high + c * rows, mask=real, other=0.0) - low
    alpha = (1.0 - below) / tl.where(spread > NO_WIDTH, spread, 1.0)
    alpha = tl.where(spread > NO_WIDTH, tl.minimum(tl.maximum(alpha, 0.0), 1.0), 0.0)
    t = _water_level(core_low, core_high, rows, good, classes, ROWS)
    kind = probability.dtype.element_ty
    at = row * classes
    highest = tl.zeros((ROWS,), tl.float64)
    held = tl.zeros((ROWS,), tl.float64)
    number = tl.zeros((ROWS,), tl.int32)
    for c in range(classes):
        low = tl.load(core_low + c * rows, mask=real, other=0.0)
        high = tl.load(core_high + c * rows, mask=real, other=0.0)
        tl.store(probability + at + c, (low + alpha * (high - low)).to(kind), mask=real)
        highest += phi(tl.minimum(tl.maximum(low, t), high))
        held += phi(low)
        is_open = good & (high > low)
        tl.store(core_low + number * rows, low, mask=is_open)
        tl.store(core_high + number * rows, high, mask=is_open)
        number += is_open.to(tl.int32)
    tl.store(total + row, tl.where(good, highest, float("nan")), mask=real)
    tl.store(size + row, number, mask=real)
    tl.store(need + row, 1.0 - below, mask=real)
    tl.store(base + row, held, mask=real)
