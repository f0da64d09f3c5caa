"""Lower entropy of a block of rows side by side: the root of the search, and what one change of a class can still gain.

Notation and facts as in ``lower.py``. The knapsack fills the classes in order of slope; f is its break class, lambda its
slope, r = x - l_f the mass it takes, q = u_f - x what it leaves. Against the chord bound a vertex costs

    sum over flipped classes of d_k = w_k |s_k - lambda|,  plus  g_j(y) = phi(y) - chord with slope lambda

for the one class j at a value y between its bounds. The vertex found costs g_f(x), the *gap*. Any other

- has j = f, and then flips one class (value known exactly) or two or more (cost at least the two least d), or
- has f down (or up): then another class takes r (gives q) alone, value known exactly; or some class i is flipped and
  what that leaves of r (of q) is moved at the least slope difference there is.

If all of these cost the gap or more, the row is done. About nine rows in ten of real predictions with ten classes are.
"""

from __future__ import annotations

from credalens.core.kernels.jit import kernel
from credalens.core.kernels.lanes import LANES, fill
from credalens.core.kernels.phi import phi

__all__ = ["lower_entropy_lanes"]

FAR = 1e300  # a slope no class has
SLACK = 1e-15  # mass below this is rounding

(
    NEED, BASE, OWN, MASS, LAMBDA, AT, LOW, HIGH, PHI_LOW, TAKEN, AFTER, AFTER_ALL, BEFORE, BEFORE_ALL,
    LEFT, GAP, BEST, LEAST, SECOND, IF_DOWN, IF_UP,
) = range(0, 21 * LANES, LANES)  # fmt: skip


@kernel
def _slopes(low, high, phi_low, phi_high, slope, width, lane):
    """Width and chord of every class, FAR where the width is zero; what is left to give away, and the entropy below."""
    fill(lane, NEED, 1.0)
    fill(lane, BASE, 0.0)
    for k in range(low.shape[0]):
        for i in range(LANES):
            lane[NEED + i] -= low[k, i]
            lane[BASE + i] += phi_low[k, i]
        for i in range(LANES):
            width[k, i] = high[k, i] - low[k, i]
        for i in range(LANES):
            chord = (phi_high[k, i] - phi_low[k, i]) / width[k, i]
            slope[k, i] = chord if width[k, i] > 0.0 else FAR


@kernel
def _mass_before(k, slope, width, lane):
    """lane[MASS] = widths of the classes before class k in order of slope, ties by position."""
    for i in range(LANES):
        lane[OWN + i] = slope[k, i]
        lane[MASS + i] = 0.0
    for j in range(k):
        for i in range(LANES):
            lane[MASS + i] += width[j, i] if slope[j, i] <= lane[OWN + i] else 0.0
    for j in range(k + 1, slope.shape[0]):
        for i in range(LANES):
            lane[MASS + i] += width[j, i] if slope[j, i] < lane[OWN + i] else 0.0


@kernel
def _break_class(low, high, phi_low, phi_high, slope, width, lane):
    """The last class in order of slope that gets mass. Every pair of classes is compared: no sort, no branch."""
    fill(lane, LAMBDA, -FAR)
    for at in (AT, LOW, HIGH, PHI_LOW, TAKEN):
        fill(lane, at, 0.0)
    for k in range(low.shape[0]):
        _mass_before(k, slope, width, lane)
        for i in range(LANES):
            filled = (lane[MASS + i] < lane[NEED + i]) & (lane[OWN + i] < FAR)
            last = filled & (lane[OWN + i] >= lane[LAMBDA + i])
            lane[BASE + i] += phi_high[k, i] - phi_low[k, i] if filled else 0.0
            lane[LAMBDA + i] = lane[OWN + i] if last else lane[LAMBDA + i]
            lane[TAKEN + i] = lane[NEED + i] - lane[MASS + i] if last else lane[TAKEN + i]
            lane[AT + i] = k if last else lane[AT + i]
            lane[LOW + i] = low[k, i] if last else lane[LOW + i]
            lane[HIGH + i] = high[k, i] if last else lane[HIGH + i]
            lane[PHI_LOW + i] = phi_low[k, i] if last else lane[PHI_LOW + i]


@kernel
def _neighbours(low, high, slope, lane):
    """Least differences of slope to the classes before and after f: to all, and to those that dominance leaves a choice."""
    for at in (AFTER, AFTER_ALL, BEFORE, BEFORE_ALL):
        fill(lane, at, FAR)
    for k in range(low.shape[0]):
        for i in range(LANES):
            s = slope[k, i]
            away = s - lane[LAMBDA + i]
            other = (s < FAR) & (lane[AT + i] != k)
            first = (away < 0.0) | ((away == 0.0) & (k < lane[AT + i]))
            below = (low[k, i] < lane[LOW + i]) | (high[k, i] < lane[HIGH + i])
            above = (low[k, i] > lane[LOW + i]) | (high[k, i] > lane[HIGH + i])
            before, after = other & first, other & (not first)
            lane[BEFORE_ALL + i] = -away if before & (-away < lane[BEFORE_ALL + i]) else lane[BEFORE_ALL + i]
            lane[BEFORE + i] = -away if before & below & (-away < lane[BEFORE + i]) else lane[BEFORE + i]
            lane[AFTER_ALL + i] = away if after & (away < lane[AFTER_ALL + i]) else lane[AFTER_ALL + i]
            lane[AFTER + i] = away if after & above & (away < lane[AFTER + i]) else lane[AFTER + i]


@kernel
def _gaps(lane):
    """What the vertex found costs against the chord bound, which goes to lane[BASE]."""
    for i in range(LANES):
        some = lane[NEED + i] > SLACK
        width = lane[HIGH + i] - lane[LOW + i]
        taken = lane[TAKEN + i] if lane[TAKEN + i] < width else width
        rise = lane[LAMBDA + i] * taken
        gap = phi(lane[LOW + i] + taken) - lane[PHI_LOW + i] - rise
        lane[TAKEN + i] = taken
        lane[LEFT + i] = width - taken
        lane[GAP + i] = lane[BEST + i] = gap if some & (gap > 0.0) else 0.0
        lane[BASE + i] -= lane[LAMBDA + i] * (width - taken) if some else 0.0


@kernel
def _one_change(low, high, phi_low, phi_high, slope, lane):
    """Every vertex one class away from the one found, and bounds on all others."""
    for at in (LEAST, SECOND, IF_DOWN, IF_UP):
        fill(lane, at, FAR)
    for k in range(low.shape[0]):
        for i in range(LANES):
            # Everything is read first: a read on one side of a branch would keep the loop from being vectorised.
            bottom, top, phi_bottom, phi_top = low[k, i], high[k, i], phi_low[k, i], phi_high[k, i]
            r, q, slope_f = lane[TAKEN + i], lane[LEFT + i], lane[LAMBDA + i]
            low_f, high_f = lane[LOW + i], lane[HIGH + i]
            before, before_all = lane[BEFORE + i], lane[BEFORE_ALL + i]
            after, after_all = lane[AFTER + i], lane[AFTER_ALL + i]
            best, least, second = lane[BEST + i], lane[LEAST + i], lane[SECOND + i]
            if_down, if_up = lane[IF_DOWN + i], lane[IF_UP + i]
            w = top - bottom
            away = slope[k, i] - slope_f
            other = (slope[k, i] < FAR) & (lane[AT + i] != k)
            first = (away < 0.0) | ((away == 0.0) & (k < lane[AT + i]))
            below = (bottom < low_f) | (top < high_f)
            above = (bottom > low_f) | (top > high_f)
            trade = other & ((first & below) | ((not first) & above))
            cost = w * abs(away)

            # f stays between its bounds and class k changes sides.
            y = low_f + r + (w if first else -w)
            value = cost + phi(y) - lane[PHI_LOW + i] - slope_f * (y - low_f)
            best = value if trade & (y >= low_f) & (y <= high_f) & (value < best) else best
            # f goes to a bound and class k alone takes r or gives q.
            move = -q if first else r
            end = top if first else bottom
            value = phi(end + move) - (phi_top if first else phi_bottom) - slope_f * move
            lane[BEST + i] = value if trade & (abs(move) <= w) & (value < best) else best

            flip = cost if trade else FAR
            second = flip if flip < second else second
            lane[SECOND + i] = least if flip < least else second
            lane[LEAST + i] = flip if flip < least else least

            # f goes to a bound, class k changes sides, and others take or give what that leaves.
            short = abs(move) - w
            near = before if first else after
            back = after_all if first else before_all
            rest = cost + abs(short) * (near if short > 0.0 else back) if trade else FAR
            far = cost + ((r + w) * after if first else (q + w) * before) if other else FAR
            down, up = (far if first else rest), (rest if first else far)
            lane[IF_DOWN + i] = down if down < if_down else if_down
            lane[IF_UP + i] = up if up < if_up else if_up


@kernel
def _conclude(lane, value, bound):
    """Value and certified bound of every row."""
    for i in range(LANES):
        down, up = lane[TAKEN + i] * lane[AFTER + i], lane[LEFT + i] * lane[BEFORE + i]
        either = down if down < up else up
        both = lane[LEAST + i] + lane[SECOND + i]
        both = both if both > either else either
        down = down if down > lane[IF_DOWN + i] else lane[IF_DOWN + i]
        up = up if up > lane[IF_UP + i] else lane[IF_UP + i]
        least = down if down < up else up
        least = least if least < both else both
        least = least if least < lane[BEST + i] else lane[BEST + i]
        lane[value + i] = lane[BASE + i] + lane[BEST + i]
        lane[bound + i] = lane[BASE + i] + least


@kernel
def lower_entropy_lanes(low, high, phi_low, phi_high, slope, width, lane, value, bound):
    """Lowest entropy found to lane[value] and a certified lower bound of it to lane[bound], in bits."""
    _slopes(low, high, phi_low, phi_high, slope, width, lane)
    _break_class(low, high, phi_low, phi_high, slope, width, lane)
    _neighbours(low, high, slope, lane)
    _gaps(lane)
    _one_change(low, high, phi_low, phi_high, slope, lane)
    _conclude(lane, value, bound)
