"""Waiting for other processes, but not for ever."""

import time
from collections.abc import Callable

PATIENCE = 300
"""Seconds until a test gives up, on a machine that has much else to do."""


def wait_until(reached: Callable[[], object]) -> None:
    """Look again and again until something is reached."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)
