"""Upper entropy of a block of rows side by side: water-filling as in ``upper.py``, with masks for branches."""

from __future__ import annotations

from credalens.kernels.lanes import LANES, fill
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.phi import phi

__all__ = ["upper_entropy_lanes"]

LEVEL, LOWS, AT_LOW, HIGHS, AT_HIGH, FIXED_LOWS, FIXED_AT_LOW, FIXED_HIGHS, FIXED_AT_HIGH, PHI_LEVEL = range(
    0, 10 * LANES, LANES
)


@kernel
def _split(low, high, lane):
    """For each row sum and number of the lower bounds at or above its level, and of the upper bounds at or below it."""
    for at in (LOWS, AT_LOW, HIGHS, AT_HIGH):
        fill(lane, at, 0.0)
    for k in range(low.shape[0]):
        # Two loops with two sums each are quicker than one with four.
        for i in range(LANES):
            above = low[k, i] >= lane[LEVEL + i]
            lane[LOWS + i] += low[k, i] if above else 0.0
            lane[AT_LOW + i] += 1.0 if above else 0.0
        for i in range(LANES):
            below = (high[k, i] <= lane[LEVEL + i]) & (low[k, i] < lane[LEVEL + i])
            lane[HIGHS + i] += high[k, i] if below else 0.0
            lane[AT_HIGH + i] += 1.0 if below else 0.0


@kernel
def _step(classes, lane):
    """Fix the classes whose side is known and go to the root for the others; the number of rows whose level moved."""
    moved = 0
    for i in range(LANES):
        t = lane[LEVEL + i]
        lows, at_low, highs, at_high = lane[LOWS + i], lane[AT_LOW + i], lane[HIGHS + i], lane[AT_HIGH + i]
        old_lows, old_at_low = lane[FIXED_LOWS + i], lane[FIXED_AT_LOW + i]
        old_highs, old_at_high = lane[FIXED_HIGHS + i], lane[FIXED_AT_HIGH + i]
        excess = lows + highs + (classes - at_low - at_high) * t - 1.0
        over = excess > 0.0
        lows, at_low = (lows if over else old_lows), (at_low if over else old_at_low)
        highs, at_high = (old_highs if over else highs), (old_at_high if over else at_high)
        free = classes - at_low - at_high
        go = (excess != 0.0) & (free > 0.0)
        step = (1.0 - lows - highs) / (free if go else 1.0)
        step = step if go else t
        moved += step != t
        lane[LEVEL + i] = step
        lane[FIXED_LOWS + i], lane[FIXED_AT_LOW + i] = lows, at_low
        lane[FIXED_HIGHS + i], lane[FIXED_AT_HIGH + i] = highs, at_high
    return moved


@inlined
def upper_entropy_lanes(low, high, phi_low, phi_high, lane, out):
    """lane[out] = the highest entropy of each row, in bits. See ``water_level`` for the method."""
    classes = low.shape[0]
    fill(lane, LEVEL, 1.0 / classes)
    for at in (FIXED_LOWS, FIXED_AT_LOW, FIXED_HIGHS, FIXED_AT_HIGH):
        fill(lane, at, 0.0)
    for _ in range(2 * classes + 2):
        _split(low, high, lane)
        if _step(classes, lane) == 0:
            break
    for i in range(LANES):
        lane[PHI_LEVEL + i] = phi(lane[LEVEL + i])
        lane[out + i] = 0.0
    for k in range(classes):
        for i in range(LANES):
            t, phi_l, phi_u, phi_t = lane[LEVEL + i], phi_low[k, i], phi_high[k, i], lane[PHI_LEVEL + i]
            lane[out + i] += phi_l if low[k, i] >= t else (phi_u if high[k, i] <= t else phi_t)
