"""Lower entropy of a block of rows side by side: the root of the search, and what one change of a class can still gain."""

from __future__ import annotations

from credalens.kernels.lanes import LANES, fill
from credalens.kernels.lower.single_flip import FAR, SLACK, certificate, change, changed, precedes, trades
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.phi import phi

__all__ = ["keep_root", "lower_entropy_lanes"]

(
    NEED, BASE, OWN, MASS, LAMBDA, AT, LOW, HIGH, PHI_LOW, TAKEN, AFTER, AFTER_ALL, BEFORE, BEFORE_ALL,
    LEFT, BEST, LEAST, SECOND, IF_DOWN, IF_UP,
) = range(0, 20 * LANES, LANES)  # fmt: skip


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
            first = precedes(away, k, lane[AT + i])
            trade = trades(first, low[k, i], high[k, i], lane[LOW + i], lane[HIGH + i])
            before, after = other & first, other & (not first)
            lane[BEFORE_ALL + i] = -away if before & (-away < lane[BEFORE_ALL + i]) else lane[BEFORE_ALL + i]
            lane[BEFORE + i] = -away if before & trade & (-away < lane[BEFORE + i]) else lane[BEFORE + i]
            lane[AFTER_ALL + i] = away if after & (away < lane[AFTER_ALL + i]) else lane[AFTER_ALL + i]
            lane[AFTER + i] = away if after & trade & (away < lane[AFTER + i]) else lane[AFTER + i]


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
        lane[BEST + i] = gap if some & (gap > 0.0) else 0.0
        lane[BASE + i] -= lane[LAMBDA + i] * (width - taken) if some else 0.0


@kernel
def _one_change(low, high, phi_low, phi_high, slope, lane):
    """Every vertex one class away from the one found, and bounds on all others."""
    for at in (LEAST, SECOND, IF_DOWN, IF_UP):
        fill(lane, at, FAR)
    for k in range(low.shape[0]):
        for i in range(LANES):
            # Everything is read first: a read on one side of a branch would keep the loop from being vectorised.
            best, least, second = lane[BEST + i], lane[LEAST + i], lane[SECOND + i]
            if_down, if_up = lane[IF_DOWN + i], lane[IF_UP + i]
            f = (lane[LOW + i], lane[HIGH + i], lane[PHI_LOW + i], lane[LAMBDA + i], lane[TAKEN + i], lane[LEFT + i])
            near = (lane[BEFORE + i], lane[AFTER + i], lane[BEFORE_ALL + i], lane[AFTER_ALL + i])
            away = slope[k, i] - lane[LAMBDA + i]
            other = (slope[k, i] < FAR) & (lane[AT + i] != k)
            first = precedes(away, k, lane[AT + i])
            low_k, high_k, phi_low_k, phi_high_k = low[k, i], high[k, i], phi_low[k, i], phi_high[k, i]
            alone, flip, down, up = change(low_k, high_k, away, other, first, f, near)
            value = changed(low_k, high_k, phi_low_k, phi_high_k, away, first, f)
            lane[BEST + i] = value if (alone < best) & (value < best) else best
            second = flip if flip < second else second
            lane[SECOND + i] = least if flip < least else second
            lane[LEAST + i] = flip if flip < least else least
            lane[IF_DOWN + i] = down if down < if_down else if_down
            lane[IF_UP + i] = up if up < if_up else if_up


@kernel
def _conclude(lane, value, bound):
    """Value and certified bound of every row."""
    for i in range(LANES):
        best = lane[BEST + i]
        least = certificate(
            best, lane[TAKEN + i], lane[LEFT + i], lane[BEFORE + i], lane[AFTER + i],
            lane[LEAST + i], lane[SECOND + i], lane[IF_DOWN + i], lane[IF_UP + i],
        )  # fmt: skip
        lane[value + i] = lane[BASE + i] + best
        lane[bound + i] = lane[BASE + i] + least


@inlined
def lower_entropy_lanes(low, high, phi_low, phi_high, slope, width, lane, value, bound):
    """Lowest entropy found to lane[value] and a certified lower bound of it to lane[bound], in bits."""
    _slopes(low, high, phi_low, phi_high, slope, width, lane)
    _break_class(low, high, phi_low, phi_high, slope, width, lane)
    _neighbours(low, high, slope, lane)
    _gaps(lane)
    _one_change(low, high, phi_low, phi_high, slope, lane)
    _conclude(lane, value, bound)


@inlined
def keep_root(i, lane, out):
    """What `settle_rows` asks for of row i."""
    out[0], out[1], out[2], out[3] = lane[AT + i], lane[LAMBDA + i], lane[TAKEN + i], lane[NEED + i]
    out[4], out[5], out[6], out[7] = lane[BEST + i], lane[BASE + i], lane[BEFORE_ALL + i], lane[AFTER_ALL + i]
