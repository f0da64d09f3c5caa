"""What a user calls after ``wrap``: the averaged decomposition and the predicted sets, beside ``wrap`` itself."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.predictions import MEMBERS, predictions_for
from benchmarks.timing import best_seconds
from credalens.prediction import wrap

__all__ = ["measure_calls"]

ROWS: Final = {10: 46_000, 100: 20_000}
REPEATS: Final = 15


def measure_calls(classes: int, /) -> dict[str, Any]:
    """Microseconds a sample of ``wrap``, ``.classical`` and ``.predict_set()`` on one thread in float64, and their sum."""
    rows = ROWS.get(classes, 1000)
    probs, source = predictions_for(MEMBERS, rows, classes)
    wrapped = [wrap(probs, threads=1) for _ in range(REPEATS + 1)]  # each computes its averaged decomposition once
    seconds = best_seconds(
        {
            "wrap": lambda: wrap(probs, threads=1),
            "predict_set": lambda: wrapped[-1].predict_set(),
            "classical": lambda: wrapped.pop().classical,
        },
        repeats=REPEATS - 1,
    )
    micro = {f"{name}_us": 1e6 * value / rows for name, value in seconds.items()}
    return {"classes": classes, "rows": rows, "predictions": source, **micro, "sum_us": sum(micro.values())}
