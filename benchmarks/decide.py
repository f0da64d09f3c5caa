"""What a guard's decision costs beside ``wrap``: accepted or not, and the p-value, which is computed on first access."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.predictions import MEMBERS, predictions_for
from benchmarks.timing import best_seconds
from credalens.guard import Guard
from credalens.prediction import wrap

__all__ = ["measure_decide"]

ROWS: Final = {10: 46_000, 100: 20_000}
CALIBRATION: Final = 10_000
REPEATS: Final = 15


def measure_decide(classes: int, /) -> dict[str, Any]:
    """Microseconds a sample of ``wrap`` and of ``decide`` on one thread in float64, and the ratios.

    The guard was fitted on up to ten thousand of the inputs.
    """
    rows = ROWS.get(classes, 1000)
    probs, source = predictions_for(MEMBERS, rows, classes)
    prediction = wrap(probs, threads=1)
    guard = Guard.fit(prediction[:CALIBRATION])
    seconds = best_seconds(
        {
            "wrap": lambda: wrap(probs, threads=1),
            "decide": lambda: guard.decide(prediction).accepted,
            "decide_with_p_value": lambda: guard.decide(prediction).p_value,
        },
        repeats=REPEATS,
    )
    micro = {f"{name}_us": 1e6 * value / rows for name, value in seconds.items()}
    ratios = {f"{name}_over_wrap": seconds[name] / seconds["wrap"] for name in ("decide", "decide_with_p_value")}
    return {"classes": classes, "rows": rows, "calibration": guard.n, "predictions": source, **micro, **ratios}
