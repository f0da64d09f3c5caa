"""Members in, what a credal prediction holds out, for few classes: a block of rows side by side at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.core.memory import aligned_empty
from credalens.kernels.lanes import LANES, fold_lanes, intersect_lanes, unload
from credalens.kernels.lanes_lower import keep_root, lower_entropy_lanes
from credalens.kernels.lanes_upper import upper_entropy_lanes
from credalens.kernels.lower.flips import ROOT
from credalens.kernels.simd.jit import kernel
from credalens.kernels.simd.phi import phi

__all__ = ["decompose_rows", "open_rows", "scratch"]

BLOCKS, SPACE = 7, 24 * LANES
HIGHEST, VALUE, BOUND = 21 * LANES, 22 * LANES, 23 * LANES


def open_rows(rows: int, classes: int) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Where `decompose_rows` puts the rows that it leaves open, what is known of their classes, and of their roots."""
    return np.empty(rows, np.intp), np.empty((rows, 5, classes)), np.empty((rows, ROOT))


def scratch(classes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Memory that `decompose_rows` works in: blocks (BLOCKS, classes, LANES), and SPACE numbers for what a row has one of."""
    memory = aligned_empty((BLOCKS * classes * LANES + SPACE,))
    return memory[SPACE:].reshape(BLOCKS, classes, LANES), memory[:SPACE]


@kernel
def _phi_lanes(block, out):
    """phi of every value of a block."""
    for k in range(block.shape[0]):
        for i in range(LANES):
            out[k, i] = phi(block[k, i])


@kernel
def _set_aside(i, low, high, phi_low, phi_high, slope, out):
    """Row i of the block, for `settle_rows`."""
    for k in range(low.shape[0]):
        out[0, k], out[1, k], out[2, k], out[3, k] = low[k, i], high[k, i], phi_low[k, i], phi_high[k, i]
        out[4, k] = slope[k, i]


@kernel
def decompose_rows(
    members, start, stop, allowed, tolerance, wide, narrow, places, open_classes, open_roots, blocks, lane
):
    """From rows start..stop of the members the rows of ``wide`` (lower, upper, probability, mean), in the precision these
    have, and of ``narrow`` (total, aleatoric, bound) in bits.

    Rows whose lower entropy is not certified yet go to ``places``, and what `settle_rows` needs of them to ``open_classes``
    and ``open_roots`` (see `open_rows`). Returns how many these are, or -1 if a row is not a distribution. ``blocks`` and
    ``lane`` are `scratch` memory.
    """
    lower, upper, probability, mean = wide
    total, aleatoric, bound = narrow
    block, low, high, average = blocks[0], blocks[1], blocks[2], blocks[3]
    phi_low, phi_high, slope = blocks[4], blocks[5], blocks[6]
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
            total[place + i] = lane[HIGHEST + i]
            aleatoric[place + i] = lane[VALUE + i]
            bound[place + i] = lane[BOUND + i]
            if lane[BOUND + i] < lane[VALUE + i] - tolerance:
                places[found] = place + i
                _set_aside(i, low, high, phi_low, phi_high, slope, open_classes[found])
                keep_root(i, lane, open_roots[found])
                found += 1
        intersect_lanes(low, high, block, lane)
        unload(low, place, count, lower)
        unload(high, place, count, upper)
        unload(block, place, count, probability)
        unload(average, place, count, mean)
    return found
