"""How the cost of ``wrap`` grows with classes, rows and members: exponents fitted to times on peaked predictions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from benchmarks.predictions import MEMBERS, realistic
from benchmarks.timing import best_seconds, fitted_exponent
from credalens.prediction import wrap

__all__ = ["measure_growth"]

CLASSES: Final = (10, 30, 100, 300, 1000)
ROWS: Final = (1000, 2000, 4000, 8000, 16_000)
COUNTS: Final = (2, 5, 10, 20, 50)
VALUES: Final = 100_000  # rows times classes where the classes grow
FEW_CLASSES: Final = 10
FEW_ROWS: Final = 4000


def measure_growth() -> dict[str, Any]:
    """Times a sample or a call on one core, and the exponents a, b, c of classes^a, rows^b, members^c.

    ``classes_log_classes`` is the exponent against C log C: at most one means C log C or better.
    """
    by_classes = _seconds({c: (MEMBERS, VALUES // c, c) for c in CLASSES})
    by_classes = {c: seconds / (VALUES // c) for c, seconds in by_classes.items()}
    by_rows = _seconds({rows: (MEMBERS, rows, FEW_CLASSES) for rows in ROWS})
    by_members = _seconds({count: (count, FEW_ROWS, FEW_CLASSES) for count in COUNTS})
    return {
        "seconds_a_sample_by_classes": by_classes,
        "seconds_by_rows": by_rows,
        "seconds_by_members": by_members,
        "exponents": {
            "classes": fitted_exponent(CLASSES, list(by_classes.values())),
            "classes_log_classes": fitted_exponent([c * math.log2(c) for c in CLASSES], list(by_classes.values())),
            "rows": fitted_exponent(ROWS, list(by_rows.values())),
            "members": fitted_exponent(COUNTS, list(by_members.values())),
        },
    }


def _seconds(shapes: dict[int, tuple[int, int, int]]) -> dict[int, float]:
    """Seconds a call for each shape (members, rows, classes); the shapes take turns."""
    arrays = {size: realistic(*shape) for size, shape in shapes.items()}
    best = best_seconds({str(size): partial(wrap, p, threads=1) for size, p in arrays.items()}, repeats=9)
    return {size: best[str(size)] for size in shapes}
