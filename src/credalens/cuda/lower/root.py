# mypy: ignore-errors
"""The root of the lower-entropy search, one warp a row: it certifies most rows, which then need no search.

As ``kernels/lower/root.py``, value by value, with the open classes of a row along the threads. Rows that rounding makes
doubtful are left open for the search. The least costs are only compared with the best value seen, so they may be rounded
down to float32: their bits order as the numbers do, and the least of a warp's integers is one instruction.
"""

import triton
import triton.language as tl

from credalens.cuda.counters import MANY_OPEN, OPEN_ROWS
from credalens.cuda.phi import phi

FAR = tl.constexpr(1e30)  # more than any cost
NARROW = tl.constexpr(2.0**-16)  # widths over upper bounds
ONE_BIT = tl.constexpr(1.4426950408889634)  # 1 / ln 2
FLOOR = tl.constexpr(1.0 - 2.0**-22)  # a float32 can be off by a quarter of this
LEAST = tl.constexpr(1e-37)  # rounded to zero: below it float32 loses digits
SLACK = tl.constexpr(1e-15)  # mass below this is rounding
FIRST, LAST = tl.constexpr(-0x80000000), tl.constexpr(0x7FFFFFFF)
FAR_BITS = tl.constexpr(0x7149F2CA)  # FAR as a float32


@triton.jit
def to_floor(x):
    """Non-negative float64 as an integer that orders as they do, rounded down."""
    return tl.where(x > LEAST, x * FLOOR, 0.0).to(tl.float32).to(tl.int32, bitcast=True)


@triton.jit
def from_floor(bits):
    """The float64 that ``to_floor`` was given, or a little less."""
    return bits.to(tl.float32, bitcast=True).to(tl.float64)


@triton.jit
def chord_slope(low, high, phi_low, phi_high):
    """The slope of phi's chord over [low, high], where low < high: one division, as a second one would take long."""
    width = high - low
    narrow = width <= NARROW * high
    slope = tl.where(narrow, phi_high + phi_low, phi_high - phi_low) / tl.where(narrow, high + low, width)
    return tl.where(narrow, slope - ONE_BIT, slope)


@triton.jit
def nearest(distance, mask):
    """The least of the masked distances, rounded down a little; FAR if there is none."""
    return from_floor(tl.min(to_floor(tl.where(mask, distance, FAR)), 0))


@triton.jit
def trades(first, low, high, low_f, high_f):
    """Whether dominance (fact c of ``kernels/lower/solve.py``) lets a class trade mass with the break class f.

    ``first``: it stands before f in order of slope.
    """
    return tl.where(first, (low < low_f) | (high < high_f), (low > low_f) | (high > high_f))


@triton.jit
def flip_bounds(low, high, away, other, first, low_f, high_f, r, q, before, after, before_all, after_all):
    """Bounds on the cost of vertices that differ in this class, FAR where impossible: this class is flipped; f is down, or
    up, and it is flipped too.

    ``away`` is its slope less that of f, ``other`` whether it is an open class and not f; r is the mass f takes, q what it
    leaves; then the least slope differences before and after f: of classes that may trade with it, and of all.
    """
    w = high - low
    trade = other & trades(first, low, high, low_f, high_f)
    cost = w * tl.abs(away)
    # Where f is at a bound and this class flipped, others take or give what that leaves.
    short = tl.where(first, q, r) - w
    closest = tl.where(first, before, after)
    back = tl.where(first, after_all, before_all)
    rest = tl.where(trade, cost + tl.abs(short) * tl.where(short > 0.0, closest, back), FAR)
    far = tl.where(other, cost + tl.where(first, (r + w) * after, (q + w) * before), FAR)
    return tl.where(trade, cost, FAR), tl.where(first, far, rest), tl.where(first, rest, far)


@triton.jit
def flip_cost(low, high, phi_low, phi_high, away, first, low_f, high_f, phi_f, slope_f, r, q):
    """The least cost of a vertex in which only this class differs, which may trade with f."""
    w = high - low
    # f stays between its bounds and this class changes sides.
    y = low_f + r + tl.where(first, w, -w)
    fits = (y >= low_f) & (y <= high_f)
    value = w * tl.abs(away) + phi(tl.where(fits, y, 0.0)) - phi_f - slope_f * (y - low_f)
    # f goes to a bound and this class alone takes r or gives q.
    move = tl.where(first, -q, r)
    able = tl.abs(move) <= w
    end = tl.where(first, high, low) + tl.where(able, move, 0.0)
    takes = phi(tl.maximum(end, 0.0)) - tl.where(first, phi_high, phi_low) - slope_f * move
    return tl.minimum(tl.where(fits, value, FAR), tl.where(able, takes, FAR))


@triton.jit
def certificate(best, r, q, before, after, least, second, if_down, if_up):
    """A lower bound of what any vertex costs, given the best cost seen and the least of what ``flip_bounds`` found."""
    down = r * after
    up = q * before
    flips = tl.maximum(least + second, tl.minimum(down, up))
    ends = tl.minimum(tl.maximum(down, if_down), tl.maximum(up, if_up))
    return tl.minimum(best, tl.minimum(ends, flips))


@triton.jit
def _break_key(key, width, need):
    """The slope of the break class, as a key: bisection between the least and the most until one class is left.

    Sums are in float32; a class they mistake for the break class takes less than nothing, or more than its width.
    """
    inside = key < LAST
    least = tl.min(key, 0)
    most = tl.max(tl.where(inside, key, FIRST), 0)
    while least < most:
        pivot = (least >> 1) + (most >> 1) + (least & most & 1)
        up_to = key <= pivot
        enough = tl.sum(tl.where(up_to, width, 0.0), 0) >= need
        last = tl.max(tl.where(up_to, key, FIRST), 0)
        next_one = tl.min(tl.where(up_to, LAST, key), 0)
        most = tl.where(enough, last, most)
        least = tl.where(enough, least, next_one)
    return most


@triton.jit
def _root(lows, highs, step, m, whole, start, tolerance, WIDTH: tl.constexpr):
    """(an entropy in bits that is attained, a lower bound): infinitely far apart where rounding leaves neither."""
    i = tl.arange(0, WIDTH)
    inside = i < m
    low = tl.load(lows + i * step, mask=inside, other=0.0).to(tl.float64)
    high = tl.load(highs + i * step, mask=inside, other=1.0).to(tl.float64)
    width = high - low
    phi_low = phi(low)
    phi_high = phi(high)
    gain = phi_high - phi_low
    slope = chord_slope(low, high, phi_low, phi_high)
    bits = slope.to(tl.float32).to(tl.int32, bitcast=True)
    key = tl.where(inside, tl.where(bits < 0, bits ^ LAST, bits), LAST)
    break_key = _break_key(key, width.to(tl.float32), whole.to(tl.float32))

    is_f = key == break_key
    at = tl.max(tl.where(is_f, i, -1), 0)
    alone = tl.sum(is_f.to(tl.int32), 0) == 1
    first = key < break_key
    low_f = tl.load(lows + at * step).to(tl.float64)
    high_f = tl.load(highs + at * step).to(tl.float64)
    phi_f = tl.sum(tl.where(is_f, phi_low, 0.0), 0)
    slope_f = tl.sum(tl.where(is_f, slope, 0.0), 0)
    r = whole - tl.sum(tl.where(first, width, 0.0), 0)
    has_break = alone & (r >= m * -SLACK) & (r <= high_f - low_f + m * SLACK)
    r = tl.minimum(tl.maximum(r, 0.0), high_f - low_f)
    q = high_f - low_f - r
    base = start + tl.sum(tl.where(first, gain, 0.0), 0) + slope_f * r
    best = tl.maximum(phi(low_f + r) - phi_f - slope_f * r, 0.0)

    other = inside & ~is_f
    away = slope - slope_f
    trade = other & trades(first, low, high, low_f, high_f)
    before = nearest(tl.abs(away), trade & first)
    after = nearest(tl.abs(away), trade & ~first)
    bound = tl.minimum(best, tl.minimum(r * after, q * before))
    if has_break & (bound < best - tolerance):
        near = (before, after, nearest(tl.abs(away), other & first), nearest(tl.abs(away), other & ~first))
        flip, down, up = flip_bounds(low, high, away, other, first, low_f, high_f, r, q, *near)
        flip = to_floor(flip)
        least = tl.min(flip, 0)
        second = tl.min(tl.where(flip > least, flip, FAR_BITS), 0)
        second = tl.where(tl.sum((flip == least).to(tl.int32), 0) > 1, least, second)
        down = from_floor(tl.min(to_floor(down), 0))
        up = from_floor(tl.min(to_floor(up), 0))
        one = flip_cost(low, high, phi_low, phi_high, away, first, low_f, high_f, phi_f, slope_f, r, q)
        best = tl.maximum(tl.minimum(best, tl.min(tl.where(trade, one, FAR), 0)), 0.0)
        bound = certificate(best, r, q, before, after, from_floor(least), from_floor(second), down, up)
    return tl.where(has_break, base + best, float("inf")), tl.where(has_break, base + bound, -float("inf"))


@triton.jit(do_not_specialize=["tolerance", "rows", "row_step", "class_step"])
def root_rows(
    many_open, core_low, core_high, size, need, base, value, bound, open_rows, counters, tolerance, rows,
    row_step, class_step, WHICH: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """An entropy in bits that is attained and a lower bound, for the rows of list WHICH of ``many_open`` (lists, rows).

    The first list stands for all rows that have at most WIDTH open classes.

    Rows with a gap above ``tolerance`` go to one of two lists of ``open_rows`` (lists, rows): to 2 WHICH if they have at most
    half of WIDTH open classes, else to the next.
    """
    EVERY: tl.constexpr = WHICH == 0
    offset = tl.cast(rows, tl.int64) * WHICH
    chosen = many_open + offset
    open_rows += 2 * offset
    lengths = counters + OPEN_ROWS + 2 * WHICH
    step = tl.cast(class_step, tl.int64)
    items = rows if EVERY else tl.load(counters + MANY_OPEN + WHICH)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        row = item if EVERY else tl.load(chosen + item)
        m = tl.load(size + row)
        if m <= WIDTH:
            whole = tl.load(need + row)
            attained = tl.load(base + row)
            floor = attained
            if (m > 0) & (whole > SLACK):
                core = tl.cast(row, tl.int64) * row_step
                if m <= WIDTH // 2:
                    attained, floor = _root(
                        core_low + core, core_high + core, step, m, whole, attained, tolerance, WIDTH // 2
                    )
                else:
                    attained, floor = _root(
                        core_low + core, core_high + core, step, m, whole, attained, tolerance, WIDTH
                    )
                if floor < attained - tolerance:
                    half = (m > WIDTH // 2).to(tl.int32)
                    place = tl.atomic_add(lengths + half, 1)
                    tl.store(open_rows + tl.cast(rows, tl.int64) * half + place, row)
            tl.store(value + row, attained)
            tl.store(bound + row, floor)
