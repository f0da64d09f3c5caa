"""Members in, what a credal prediction holds out, for few classes: a block of rows side by side at a time."""

from __future__ import annotations

import numpy as np

from credalens.core.kernels.flips import FLIP_ROWS, MOST_SETS
from credalens.core.kernels.jit import kernel
from credalens.core.kernels.lanes import LANES, fold_lanes, intersect_lanes, unload
from credalens.core.kernels.lanes_lower import lower_entropy_lanes, settle_lane
from credalens.core.kernels.lanes_upper import upper_entropy_lanes
from credalens.core.kernels.phi import phi

__all__ = ["BLOCKS", "FEW_CLASSES", "SPACE", "decompose_rows"]

FEW_CLASSES = 24  # above, comparing every pair of classes costs more than it saves

BLOCKS, SPACE = 7, 24 * LANES
HIGHEST, VALUE, BOUND = 21 * LANES, 22 * LANES, 23 * LANES


@kernel
def _phi_lanes(block, out):
    """phi of every value of a block."""
    for k in range(block.shape[0]):
        for i in range(LANES):
            out[k, i] = phi(block[k, i])


@kernel
def _set_aside(i, low, high, phi_low, phi_high, at, out):
    """Row i of the block, for the search."""
    for k in range(low.shape[0]):
        out[0, at, k], out[1, at, k] = low[k, i], high[k, i]
        out[2, at, k], out[3, at, k] = phi_low[k, i], phi_high[k, i]


@kernel
def decompose_rows(members, start, stop, allowed, tolerance, wide, narrow, open_rows, open_bounds, blocks, lane):
    """From rows start..stop of the members the rows of ``wide`` (lower, upper, probability, mean), in the precision these
    have, and of ``narrow`` (total, aleatoric, bound) in bits.

    Rows whose lower entropy is not certified yet go to ``open_rows``, their bounds and phi of both to ``open_bounds``
    (4, rows, classes). Returns how many these are, or -1 if a row is not a distribution. ``blocks`` (BLOCKS, classes,
    LANES) and ``lane`` (SPACE) are scratch memory.
    """
    lower, upper, probability, mean = wide
    total, aleatoric, bound = narrow
    block, low, high, average = blocks[0], blocks[1], blocks[2], blocks[3]
    phi_low, phi_high, slope = blocks[4], blocks[5], blocks[6]
    known, sets, costs = (
        np.empty((FLIP_ROWS, members.shape[2])),
        np.empty(MOST_SETS, np.int64),
        np.empty((2, MOST_SETS)),
    )
    found = np.int64(0)
    for first in range(start, stop, LANES):
        count = min(LANES, stop - first)
        if not fold_lanes(members, first, stop, allowed, block, low, high, average, lane):
            return -1
        _phi_lanes(low, phi_low)
        _phi_lanes(high, phi_high)
        upper_entropy_lanes(low, high, phi_low, phi_high, lane, HIGHEST)
        lower_entropy_lanes(low, high, phi_low, phi_high, slope, block, lane, VALUE, BOUND)
        place = first - start
        for i in range(count):
            if lane[BOUND + i] < lane[VALUE + i] - tolerance and not settle_lane(
                i, low, high, phi_low, phi_high, slope, lane, VALUE, BOUND, known, sets, costs
            ):
                open_rows[found] = place + i
                _set_aside(i, low, high, phi_low, phi_high, found, open_bounds)
                found += 1
        for i in range(count):
            total[place + i] = lane[HIGHEST + i]
            aleatoric[place + i] = lane[VALUE + i]
            bound[place + i] = lane[BOUND + i]
        intersect_lanes(low, high, block, lane)
        unload(low, place, count, lower)
        unload(high, place, count, upper)
        unload(block, place, count, probability)
        unload(average, place, count, mean)
    return found
