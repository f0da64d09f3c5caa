# mypy: ignore-errors
"""What it costs to leave the vertex that the chord bound finds: ``kernels/lower/single_flip.py``, value by value.

The least costs are only compared with the best value seen, so they may be rounded down to float32: their bits order as
the numbers do, and the least of a warp's integers is one instruction.
"""

import triton
import triton.language as tl

from credalens.cuda.phi import phi

FAR = tl.constexpr(1e30)  # more than any cost
NARROW = tl.constexpr(2.0**-16)  # widths over upper bounds
ONE_BIT = tl.constexpr(1.4426950408889634)  # 1 / ln 2
FLOOR = tl.constexpr(1.0 - 2.0**-22)  # a float32 can be off by a quarter of this
LEAST = tl.constexpr(1e-37)  # rounded to zero: below it float32 loses digits


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
