"""Waiting for other processes, but not for ever."""

import time
from collections.abc import Callable

PATIENCE = 60
"""Seconds until a test gives up."""


def wait_until(reached: Callable[[], object]) -> None:
    """Look again and again until something is reached."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)
