"""What it costs to start: the import, the first call on a fresh install, the first call of every later process."""

from __future__ import annotations

import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Final

__all__ = ["measure_startup"]

IMPORTS: Final = 7
LATER: Final = 5
CODE: Final = """
import time
start = time.perf_counter()
import credalens
imported = time.perf_counter() - start
if {wrap}:
    credalens.wrap([[[0.2, 0.5, 0.3]] * 100, [[0.1, 0.3, 0.6]] * 100])
print(imported, time.perf_counter() - start, time.process_time())
"""


def measure_startup() -> dict[str, float]:
    """Seconds in fresh processes, from the import on: the best of several, and the only one of the first call ever.

    The first call compiles into an empty cache; later processes find it there. Processor time, the interpreter's own
    start included, says what a busy machine added.
    """
    imported = min(_seconds(wrap=False)[0] for _ in range(IMPORTS))
    with TemporaryDirectory() as cache:
        _, first, first_processor = _seconds(wrap=True, cache=cache)
        later = [_seconds(wrap=True, cache=cache)[1:] for _ in range(LATER)]
    return {
        "import_seconds": imported,
        "first_ever_seconds": first,
        "first_ever_processor_seconds": first_processor,
        "later_process_seconds": min(seconds for seconds, _ in later),
        "later_process_processor_seconds": min(processor for _, processor in later),
    }


def _seconds(*, wrap: bool, cache: str | None = None) -> tuple[float, float, float]:
    """Seconds of the import, until the end of the first call, and of processor time, in a process of its own."""
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    command = [sys.executable, "-c", CODE.format(wrap=wrap)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603  (our own code)
    imported, total, processor = map(float, done.stdout.split())
    return imported, total, processor
