"""Rows side by side: blocks of LANES rows with the classes as the outer axis, so that loops run over rows.

With few classes a loop over one row is too short for vector units, and its branches differ from row to row. Here every
inner loop runs over LANES rows without a branch. A block is an array (classes, LANES). What a row has only one of stands
in one flat array, ``lane``, at fixed offsets: offsets the compiler knows are what lets it see that nothing overlaps.
"""

from __future__ import annotations

from credalens.kernels.simd.jit import inlined, kernel

__all__ = ["LANES", "fill", "fold_lanes", "intersect_lanes", "load", "unload"]

LANES = 64
EXACT = 1e-14  # a row this close to one is left as it is: dividing would only move the last digits

TOTAL, LEAST = 0 * LANES, 1 * LANES
BELOW, WIDTH = 0 * LANES, 1 * LANES


@inlined
def fill(lane, at, value):
    """One value for every lane."""
    for i in range(LANES):
        lane[at + i] = value


@inlined
def load(rows, start, stop, block):
    """Rows start..stop, turned; the last one again where they do not fill the block."""
    for i in range(LANES):
        row = rows[min(start + i, stop - 1)]
        for k in range(block.shape[0]):
            block[k, i] = row[k]


@inlined
def unload(block, start, count, out):
    """The first ``count`` lanes to rows of ``out``, turned back."""
    for i in range(count):
        row = out[start + i]
        for k in range(block.shape[0]):
            row[k] = block[k, i]


@kernel
def _scales(block, tolerance, lane):
    """lane[TOTAL] = 1 / sum of each row; the number of rows that are probability distributions."""
    fill(lane, TOTAL, 0.0)
    fill(lane, LEAST, 0.0)
    for k in range(block.shape[0]):
        for i in range(LANES):
            value = block[k, i]
            lane[TOTAL + i] += value
            lane[LEAST + i] = value if value < lane[LEAST + i] else lane[LEAST + i]
    good = 0
    for i in range(LANES):
        off = abs(lane[TOTAL + i] - 1.0)
        good += (lane[LEAST + i] >= 0.0) & (off <= tolerance)
        lane[TOTAL + i] = 1.0 if off <= EXACT else 1.0 / lane[TOTAL + i]
    return good


@inlined
def fold_lanes(members, start, stop, tolerance, block, low, high, mean, lane):
    """Lower, upper and mean probability of a block of rows; False if a row is not a distribution."""
    count = members.shape[0]
    for n in range(count):
        load(members[n], start, stop, block)
        if _scales(block, tolerance, lane) < LANES:
            return False
        for k in range(block.shape[0]):
            # Two loops: with one array more to write, the compiler gives up checking that they do not overlap.
            for i in range(LANES):
                value, least, most = block[k, i] * lane[TOTAL + i], low[k, i], high[k, i]
                low[k, i] = value if (n == 0) | (value < least) else least
                high[k, i] = value if (n == 0) | (value > most) else most
            for i in range(LANES):
                before = mean[k, i]
                mean[k, i] = block[k, i] * lane[TOTAL + i] + (0.0 if n == 0 else before)
    for k in range(block.shape[0]):
        for i in range(LANES):
            mean[k, i] /= count
    return True


@inlined
def intersect_lanes(low, high, p, lane):
    """p = l + alpha (u - l) with alpha = (1 - sum l) / sum (u - l); where all widths vanish, l itself."""
    fill(lane, BELOW, 0.0)
    fill(lane, WIDTH, 0.0)
    for k in range(low.shape[0]):
        for i in range(LANES):
            lane[BELOW + i] += low[k, i]
            lane[WIDTH + i] += high[k, i] - low[k, i]
    for i in range(LANES):
        width = lane[WIDTH + i]
        alpha = (1.0 - lane[BELOW + i]) / width
        alpha = alpha if alpha > 0.0 else 0.0
        alpha = alpha if alpha < 1.0 else 1.0
        lane[WIDTH + i] = alpha if width > 1e-15 else 0.0
    for k in range(low.shape[0]):
        for i in range(LANES):
            p[k, i] = low[k, i] + lane[WIDTH + i] * (high[k, i] - low[k, i])
