"""Places: how many connections and requests are taken at once, and whose body has to give way when there are no more."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from credalens.serve.protocol.errors import RequestError

MOST: Final = 4096
"""Most connections of a process, where the system allows it as many."""

RESERVED: Final = 64
"""Descriptors that are kept for everything else."""

GRACE: Final = 1.0
"""Seconds until a body may be called slow."""

SLOW: Final = 1024
"""Bytes per second below which it is."""


@dataclass(eq=False)
class Place:
    """One request that is taken and not yet answered.

    :ivar received: bytes of its body so far.
    :ivar limit: until when the body must arrive; None before it is awaited and when it has arrived.
    """

    since: float
    received: int = 0
    limit: asyncio.Timeout | None = field(default=None, repr=False)

    def is_slow(self, now: float) -> bool:
        """Whether a body is awaited that hardly arrives."""
        age = now - self.since
        return self.limit is not None and not self.limit.expired() and hardly_arrives(self.received, age)


class Places:
    """Places for ``most`` requests. Where all are taken, the oldest slow body loses its own, as if its time were over.

    Otherwise as many clients as there are places could keep all others away by one byte each.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: dict[Place, None] = {}  # in the order of their arrival

    @contextmanager
    def take(self) -> Iterator[Place]:
        """A place, for the time in which it is needed; refuses with 503 where there is none."""
        now = asyncio.get_running_loop().time()
        if len(self._taken) >= self.most and not self._give_up_slow(now):
            raise RequestError("the server is busy; try again.", status=503)
        place = Place(now)
        self._taken[place] = None
        try:
            yield place
        finally:
            self._taken.pop(place, None)

    def _give_up_slow(self, now: float) -> bool:
        place = next((place for place in self._taken if place.is_slow(now)), None)
        if place is None or place.limit is None:
            return False
        place.limit.reschedule(now)
        del self._taken[place]
        return True


def hardly_arrives(received: int, age: float) -> bool:
    """Whether a body is slow that has been awaited for so many seconds."""
    return age > GRACE and received < SLOW * age


def most_connections() -> int:
    """How many connections this process may have, so that its descriptors suffice for them."""
    if sys.platform == "win32":
        return MOST
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if allowed == resource.RLIM_INFINITY else max(min(MOST, allowed - RESERVED), 1)


def most_requests(queue: int) -> int:
    """How many may wait for answers: at most half of the connections, so that there is always one to give up for a new one."""
    return max(min(queue, most_connections() // 2), 1)
