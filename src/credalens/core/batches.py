"""Rows in chunks that fit in the cache, on one thread or several. Kernels release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from numpy.typing import NDArray

from credalens.checks.options import check_threads

CHUNK = 32768  # values: calling kernels costs little against as many, and the arrays of a chunk still fit in a cache
ENOUGH = CHUNK // 2  # values: with fewer, another thread takes as long to start as it saves
TURNS = 4  # chunks a thread at least, so that none waits long for the last one


def usable_cores() -> int:
    """The number of cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunk_rows(rows: int, classes: int, workers: int, /) -> int:
    """How many rows make a chunk: as many as fit in the cache, fewer where threads would not get several each."""
    values = CHUNK if workers == 1 else min(CHUNK, rows * classes // (TURNS * workers))
    return max(1, values // classes)


def _taken(starts: deque[int]) -> Iterator[int]:
    """The starts that are left, one after the other; several threads may take from them."""
    with suppress(IndexError):
        while True:
            yield starts.popleft()


def for_each_chunk(
    work: Callable[[int, int], object], rows: int, classes: int, /, *, threads: int | None = None
) -> None:
    """Call ``work(start, stop)`` until all rows are done. An error in one chunk is raised here.

    ``threads=None`` uses every core this process may run on, but no more threads than there is work for. The calling
    thread is one of them, and each takes the next chunk when it is done with one.
    """
    threads = check_threads(threads)
    useful = rows * classes // ENOUGH
    workers = 1 if useful <= 1 else min(threads or usable_cores(), useful, rows)
    size = chunk_rows(rows, classes, workers)
    if workers == 1:
        for start in range(0, rows, size):
            work(start, min(start + size, rows))
        return
    starts = deque(range(0, rows, size))

    def take_turns() -> None:
        try:
            for start in _taken(starts):
                work(start, min(start + size, rows))
        except BaseException:
            starts.clear()  # nobody needs the other chunks any more
            raise

    helpers = min(workers, len(starts)) - 1
    with ThreadPoolExecutor(helpers) as pool:
        others = [pool.submit(take_turns) for _ in range(helpers)]
        take_turns()
    for other in others:
        other.result()


def in_chunks(work: Callable[..., object], /, *arrays: NDArray, classes: int, threads: int | None = None) -> None:
    """Call ``work`` with the same rows of every array, chunk by chunk."""
    for_each_chunk(lambda start, stop: work(*(x[start:stop] for x in arrays)), len(arrays[0]), classes, threads=threads)
