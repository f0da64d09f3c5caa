"""The credal decomposition timed against averaging and against the paper's solver, on one thread and on two."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import classical_numpy, slsqp
from benchmarks.predictions import MEMBERS, predictions_for
from benchmarks.timing import best_seconds
from credalens.core.entropy import lower_entropy
from credalens.core.intervals import probability_intervals
from credalens.prediction import wrap

__all__ = ["CLASSES", "measure_decomposition"]

# So many that a call takes tens of milliseconds: in a few, the start of a second thread would be a part of what is measured.
ROWS: Final = {3: 100_000, 8: 50_000, 10: 46_000, 20: 40_000, 100: 20_000, 1000: 2_000}
SOLVER_ROWS: Final = {3: 200, 8: 200, 10: 200, 20: 100, 100: 20, 1000: 1}
CLASSES: Final = tuple(SOLVER_ROWS)
WRONG: Final = 1e-3  # bits
SOLVER_PASSES: Final = 3
REPEATS: Final = 21  # some of them undisturbed, even on a busy machine


def measure_decomposition(classes: int, /) -> dict[str, Any]:
    """Microseconds a sample for the contenders, their ratios, and the solver's errors.

    All compute in float64, but for the entries that name float32, the precision that networks have: there averaging computes
    in float32, and ours in float64 all the same.
    """
    rows = ROWS.get(classes, 1000)
    probs, source = predictions_for(MEMBERS, rows, classes)
    single = probs.astype(np.float32)
    seconds = best_seconds(
        {
            "classical": lambda: classical_numpy(probs),
            "ours": lambda: wrap(probs, threads=1),
            "ours_two_threads": lambda: wrap(probs, threads=2),
            "classical_float32": lambda: classical_numpy(single),
            "ours_float32": lambda: wrap(single, threads=1),
        },
        repeats=REPEATS,
    )
    micro = {name: 1e6 * value / rows for name, value in seconds.items()}
    errors, micro["slsqp"] = _solver(probs[:, : SOLVER_ROWS.get(classes, 10)])
    return {
        "classes": classes,
        "rows": rows,
        "predictions": source,
        "solver_rows": len(errors),
        **{f"{name}_us": value for name, value in micro.items()},
        "ours_over_classical": micro["ours"] / micro["classical"],
        "two_threads_over_classical": micro["ours_two_threads"] / micro["classical"],
        "float32_ours_over_classical": micro["ours_float32"] / micro["classical_float32"],
        "slsqp_over_ours": micro["slsqp"] / micro["ours"],
        "slsqp_wrong_share": float((errors > WRONG).mean()),
        "slsqp_worst_error_bits": float(errors.max()),
    }


def _solver(probs: NDArray) -> tuple[NDArray, float]:
    """Errors of the solver's lowest entropy in bits, and its microseconds a sample.

    On one BLAS thread, and in processor time, the best of a few passes: threads that wait for each other, and a busy
    machine, would make the solver look up to thirty times slower than it is.
    """
    from threadpoolctl import threadpool_limits

    lower, upper = probability_intervals(probs)
    best = np.inf
    with threadpool_limits(1):
        for _ in range(SOLVER_PASSES if len(lower) > 1 else 1):
            start = time.thread_time()
            found = np.array([slsqp(a, b) for a, b in zip(lower, upper, strict=True)])
            best = min(best, time.thread_time() - start)
    return np.abs(found[:, 1] - lower_entropy(lower, upper)), 1e6 * best / len(found)
