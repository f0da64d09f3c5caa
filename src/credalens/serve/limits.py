"""Limits: how much a server takes at once, and how it gathers requests into batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from credalens.checks.options import check_count, check_real


@dataclass(frozen=True)
class Limits:
    """What one worker takes. Memory for requests stays below ``queue`` times ``body_bytes``, and a few copies of the largest.

    :ivar body_bytes: of one request.
    :ivar rows: of one request.
    :ivar classes: of members' outputs.
    :ivar queue: requests that were taken and are not yet answered; beyond them the answer is 503 with ``Retry-After``.
    :ivar batch_rows: requests are joined up to so many rows, and larger ones are predicted in parts of as many.
    :ivar batch_delay: seconds to wait for more requests when the worker is idle. While it is busy they gather anyway.
    :ivar timeout: seconds until a request that is not answered gets 504, or 408 where its body has not arrived.
    """

    body_bytes: int = 32 << 20
    rows: int = 10_000
    classes: int = 10_000
    queue: int = 128
    batch_rows: int = 1024
    batch_delay: float = 0.0
    timeout: float = 60.0

    def __post_init__(self) -> None:
        for name in ("body_bytes", "rows", "classes", "queue", "batch_rows"):
            check_count(getattr(self, name), name)
        if not 0 <= check_real(self.batch_delay, "batch_delay", "a number of seconds") < math.inf:
            raise ValueError(f"batch_delay must be finite and at least 0; got {self.batch_delay!r}.")
        if not check_real(self.timeout, "timeout", "a number of seconds") > 0:
            raise ValueError(f"timeout must be above 0; got {self.timeout!r}.")
