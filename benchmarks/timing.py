"""Timing side by side: contenders take turns, so that a change of the machine's mood meets them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

__all__ = ["best_seconds", "fitted_exponent"]


def best_seconds(jobs: Mapping[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """The shortest time of each job over rounds in which they take turns; the first call warms up."""
    for job in jobs.values():
        job()
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def fitted_exponent(sizes: Sequence[float], seconds: Sequence[float], /) -> float:
    """The a of seconds ~ size^a: the slope of the least-squares line through the logarithms.

    >>> round(fitted_exponent([1, 10, 100], [2.0, 20.0, 200.0]), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
