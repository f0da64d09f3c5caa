"""Rows that the root leaves open, written down for the enumeration.

In a kernel of its own: it is compiled only when a row needs it, and keeps the loop over all rows short. A record is a few
numbers and, of the open classes in whole vectors, lower and upper bounds, phi of both, and slopes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.kernels.buffers import aligned_empty
from credalens.kernels.lower.enumeration import flips_of
from credalens.kernels.lower.open_classes import OpenClasses
from credalens.kernels.lower.solve import Budget, RowRoot, enumerate_row, list_if_open
from credalens.kernels.rows import whole_vectors
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.vectors import WIDTH, load, store

ROW, OPEN, AT, TAKEN, BEST, FLOOR, CHORD = range(7)
CLASSES = 8  # where the classes begin


def records_workspace(rows: int, classes: int, /) -> NDArray[np.float64]:
    """Room for a record of every row."""
    return aligned_empty((rows * (CLASSES + 5 * whole_vectors(classes)),))


@inlined
def write_record(i, row, records, start):
    """Append the record of row i; returns where the next one begins."""
    records[start + ROW], records[start + OPEN], records[start + AT] = i, row.m, row.at
    records[start + TAKEN], records[start + BEST] = row.r, row.best
    records[start + FLOOR], records[start + CHORD] = row.floor, row.chord
    size, classes = row.m + -row.m % WIDTH, row.classes
    for k in range(0, size, WIDTH):
        at = start + CLASSES + k
        store(records, at, load(classes.low, k))
        store(records, at + size, load(classes.high, k))
        store(records, at + 2 * size, load(classes.phi_low, k))
        store(records, at + 3 * size, load(classes.phi_high, k))
        store(records, at + 4 * size, load(classes.slope, k))
    return start + CLASSES + 5 * size


@kernel
def enumerate_records(records, end, tolerance, max_nodes, entropy, bound, open_rows, workspace):
    """Better the entropies of the rows with records, or raise their bounds, in bits.

    Rows left open are listed in ``open_rows``; returns how many. ``workspace`` is a
    `flips_workspace`.
    """
    search, budget = flips_of(workspace), Budget(tolerance, max_nodes)
    nowhere, start, number = records[:0], 0, 0
    while start < end:
        i, m, at = int(records[start + ROW]), int(records[start + OPEN]), int(records[start + AT])
        size = m + -m % WIDTH
        low = start + CLASSES
        high, phi_low, phi_high, slope, end_of_row = (
            low + size,
            low + 2 * size,
            low + 3 * size,
            low + 4 * size,
            low + 5 * size,
        )
        classes = OpenClasses(
            records[low:high],
            records[high:phi_low],
            records[phi_low:phi_high],
            records[phi_high:slope],
            records[slope:end_of_row],
            open_rows,  # never read: no vertex is written
        )
        best, floor, chord = records[start + BEST], records[start + FLOOR], records[start + CHORD]
        row = RowRoot(chord, best, floor, m, at, records[start + TAKEN], classes)
        best, certified, _ = enumerate_row(row, best, 1.0, budget, search, nowhere, nowhere)
        entropy[i], bound[i] = chord + best, chord + max(floor, certified)
        number = list_if_open(i, entropy[i], bound[i], tolerance, open_rows, number)
        start = end_of_row
    return number
