"""Limits: how much a server accepts at once, and how it joins requests into batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from credalens.checks.options import check_count, check_real, number_text

LONGEST: Final = 1e9  # seconds that clocks and timers of servers take


@dataclass(frozen=True)
class Limits:
    """How much one worker accepts, for ``app(..., limits=)``.

    Its requests need at most ``queue`` times ``body_bytes`` of memory, and a few copies of the largest request and answer.
    Long answers that clients have not read yet take 512 MiB at most, or one of them more; short ones (128 KiB) do not count.

    :ivar body_bytes: most bytes in a request.
    :ivar rows: most rows in a request.
    :ivar classes: most classes in members' outputs.
    :ivar members: most members in members' outputs that a request brings.
    :ivar queue: most requests that are accepted and not yet answered; others get 503 with ``Retry-After``.
    :ivar batch_rows: most rows in a batch: small requests are joined, large ones are split.
    :ivar batch_delay: seconds that an idle worker waits for more requests. While it is busy they gather anyway.
    :ivar timeout: seconds until a request gets 504, or 408 if its body has not arrived.
    :ivar values: most values in an answer, and most rows times classes that a request may have computed.

    >>> Limits(rows=1000, timeout=5).batch_rows
    1024
    """

    body_bytes: int = 32 << 20
    rows: int = 10_000
    classes: int = 10_000
    queue: int = 128
    batch_rows: int = 1024
    batch_delay: float = 0.0
    timeout: float = 60.0
    values: int = 10_000_000
    members: int = 10_000

    def __post_init__(self) -> None:
        for name in ("body_bytes", "rows", "classes", "queue", "batch_rows", "values", "members"):
            check_count(getattr(self, name), name)
        if not 0 <= check_real(self.batch_delay, "batch_delay", "a number of seconds") < math.inf:
            raise ValueError(f"batch_delay must be finite and at least 0; got {self.batch_delay!r}.")
        if not 0 < check_real(self.timeout, "timeout", "a number of seconds") <= LONGEST:
            raise ValueError(
                f"timeout must be above 0 and at most {LONGEST:g} seconds; got {number_text(self.timeout)}."
            )
