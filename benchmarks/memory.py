"""Peak memory of ``wrap`` beside the size of what it returns."""

from __future__ import annotations

import tracemalloc
from typing import Any, Final

import numpy as np

from benchmarks.predictions import MEMBERS
from credalens.prediction import wrap

__all__ = ["measure_memory"]

ROWS: Final = 1_000_000
CLASSES: Final = 10
FIELDS: Final = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")


def measure_memory(rows: int = ROWS) -> dict[str, Any]:
    """Bytes that ``wrap`` takes at its peak for float32 members (5, rows, 10), and their ratio to its outputs' bytes."""
    few = np.random.default_rng(0).dirichlet(np.ones(CLASSES), (MEMBERS, 1000)).astype(np.float32)
    probs = np.tile(few, (1, rows // 1000, 1))
    wrap(few)  # compiled code is not counted
    tracemalloc.start()
    try:
        prediction = wrap(probs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    outputs = sum(getattr(prediction, name).nbytes for name in FIELDS)
    return {
        "rows": probs.shape[1],
        "classes": CLASSES,
        "input_bytes": probs.nbytes,
        "output_bytes": outputs,
        "peak_bytes": peak,
        "peak_over_outputs": peak / outputs,
    }
