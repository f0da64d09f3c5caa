"""The last minutes: what had been counted at regular times."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

STEP: Final = 5  # seconds
MINUTES: Final = 15


@dataclass(frozen=True)
class History:
    """Samples of counts, the oldest first. A sample between two steps replaces the one before it."""

    samples: deque[dict[str, float]] = field(default_factory=lambda: deque(maxlen=round(60 * MINUTES / STEP) + 1))

    def add(self, counts: dict[str, float], now: float | None = None, /) -> None:
        """Add what is counted now."""
        now = time.time() if now is None else now
        if len(self.samples) > 1 and self.samples[-1]["time"] - self.samples[-2]["time"] < STEP:
            self.samples.pop()
        self.samples.append({"time": round(now, 3)} | counts)
