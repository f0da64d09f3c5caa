"""What is hard: the lowest entropy of flat predictions with many classes, and the generalized Hartley measure."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.predictions import MEMBERS, flat, predictions_for
from benchmarks.timing import best_seconds
from credalens.core.entropy import lower_entropy
from credalens.core.hartley import generalized_hartley
from credalens.core.intervals import probability_intervals

__all__ = ["measure_flat", "measure_hartley"]

FLAT_CLASSES: Final = 1000
FLAT_ROWS: Final = {1e-3: 40, 1e-6: 20}
BUDGET: Final = 1_000_000  # nodes, so many that the search ends with the certificate asked for
HARTLEY_ROWS: Final = {10: 2000, 100: 40, 1000: 4}


def measure_flat() -> list[dict[str, Any]]:
    """Microseconds a sample to certify the lowest entropy of flat predictions, for each tolerance in bits."""
    return [_certify(tolerance, rows) for tolerance, rows in FLAT_ROWS.items()]


def _certify(tolerance: float, rows: int) -> dict[str, Any]:
    lower, upper = probability_intervals(flat(MEMBERS, rows, FLAT_CLASSES))

    def job() -> Any:
        return lower_entropy(lower, upper, tolerance=tolerance, max_nodes=BUDGET, return_bounds=True, threads=1)

    seconds = best_seconds({"ours": job}, repeats=2)["ours"]
    below, above = job()[-1]
    return {
        "classes": FLAT_CLASSES,
        "rows": rows,
        "tolerance_bits": tolerance,
        "us": 1e6 * seconds / rows,
        "widest_bracket_bits": float((above - below).max()),
    }


def measure_hartley() -> list[dict[str, Any]]:
    """Microseconds a sample of the generalized Hartley measure, to 1e-3 bit where it is not exact."""
    return [_hartley(c, rows, kind) for c, rows in HARTLEY_ROWS.items() for kind in ("peaked", "flat")]


def _hartley(classes: int, rows: int, kind: str) -> dict[str, Any]:
    probs = flat(MEMBERS, rows, classes) if kind == "flat" else predictions_for(MEMBERS, rows, classes)[0]
    lower, upper = probability_intervals(probs)
    seconds = best_seconds({"ours": lambda: generalized_hartley(lower, upper, threads=1)}, repeats=3)["ours"]
    _, (below, above) = generalized_hartley(lower, upper, return_bounds=True)
    return {
        "classes": classes,
        "rows": rows,
        "predictions": kind,
        "us": 1e6 * seconds / rows,
        "widest_bracket_bits": float((above - below).max()),
    }
