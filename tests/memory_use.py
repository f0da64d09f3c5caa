"""How much memory a piece of work takes."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
WAIT = 0.1


def with_peak(work: Callable[[], Result], /) -> tuple[Result, int]:
    """What the work returns, and the most bytes that Python and NumPy held for it at a time.

    Threads that were joined may still be ending, and a thread that frees memory while tracing stops can crash the interpreter
    (python/cpython#128679, mended in 3.12.9 and 3.13.2): they are given time.
    """
    tracemalloc.start()
    try:
        result = work()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        time.sleep(WAIT)
        tracemalloc.stop()
