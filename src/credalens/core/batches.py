"""Rows in chunks that fit in the cache, on one thread or several. Kernels release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from credalens.checks import check_threads

__all__ = ["for_each_chunk"]

CHUNK = 32768  # values: calling kernels costs little against as many, and the arrays of a chunk still fit in a cache


def usable_cores() -> int:
    """The number of cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def for_each_chunk(work: Callable[[int, int], None], rows: int, classes: int, /, *, threads: int | None = None) -> None:
    """Call ``work(start, stop)`` until all rows are done. An error in one chunk is raised here.

    ``threads=None`` uses every core this process may run on, but never more threads than chunks.
    """
    size = max(1, CHUNK // classes)
    starts = range(0, rows, size)
    workers = min(check_threads(threads) or usable_cores(), len(starts))
    if workers <= 1:
        for start in starts:
            work(start, min(start + size, rows))
        return
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda start: work(start, min(start + size, rows)), starts):
            pass
