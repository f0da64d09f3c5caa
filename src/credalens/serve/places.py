"""Places: how many connections, requests and unread answers there are at once, and who gives way when there is no room."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from credalens.serve.protocol.errors import RequestError

MOST: Final = 4096
"""Most connections of a process, where the system allows it as many."""

RESERVED: Final = 64
"""Descriptors that are kept for everything else."""

GRACE: Final = 1.0
"""Seconds until a body may be called slow."""

SLOW: Final = 1024
"""Bytes per second below which it is."""

UNREAD: Final = 512 << 20
"""Most bytes of long answers that are not yet read."""

SHORT: Final = 128 << 10
"""Bytes up to which an answer is not long."""

READING: Final = 10.0
"""Seconds until a reader may be called slow."""

SLOW_READING: Final = 1 << 20
"""Bytes per second below which it is."""

PIECE: Final = 64 << 10
"""Most bytes that are handed to a connection at once: its client has to read them before more are."""


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


@dataclass(eq=False)
class Held:
    """The bytes of one long answer, from before it is written until it is read.

    :ivar since: when its client could begin to read; None before that.
    """

    size: int
    since: float | None = None
    read: int = 0
    limit: asyncio.Timeout | None = field(default=None, repr=False)

    def is_slow(self, now: float) -> bool:
        """Whether it is hardly read."""
        age = 0.0 if self.since is None else now - self.since
        return age > READING and self.read < SLOW_READING * age


class Unread:
    """Long answers that are not yet read: at most `UNREAD` bytes, or one that is larger.

    Where another one comes, those are given up whose clients hardly read them.
    """

    def __init__(self) -> None:
        self._held: dict[Held, None] = {}  # in the order of their writing

    def take(self, size: int) -> Held:
        """Room for an answer; refuses with 503 where there is none."""
        now = asyncio.get_running_loop().time()
        while self._held and sum(held.size for held in self._held) + size > UNREAD:
            slow = next((held for held in self._held if held.is_slow(now)), None)
            if slow is None:
                raise RequestError("other clients have not read their long answers yet; try again.", status=503)
            self.give_back(slow)
            if slow.limit is not None and not slow.limit.expired():
                slow.limit.reschedule(now)
        self._held[held := Held(size)] = None
        return held

    def give_back(self, held: Held) -> None:
        """It is read, or given up."""
        self._held.pop(held, None)


class Sending:
    """ASGI: sends an answer in pieces that its client has to read one after the other, and gives its room back then."""

    def __init__(self, answer: ASGIApp, held: Held, unread: Unread) -> None:
        self._answer, self._held, self._unread = answer, held, unread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. Where it has to give way it ends early, and the server closes the connection."""
        self._held.since = asyncio.get_running_loop().time()

        async def send_pieces(message: Any) -> None:
            body = message.get("body", b"")
            for start in range(PIECE, len(body), PIECE):
                await send(message | {"body": body[start - PIECE : start], "more_body": True})
                self._held.read += PIECE
            rest = (len(body) - 1) // PIECE * PIECE if body else 0
            await send(message | {"body": body[rest:]} if rest else message)
            self._held.read += len(body) - rest

        try:
            async with asyncio.timeout(None) as self._held.limit:
                await self._answer(scope, receive, send_pieces)
        except TimeoutError:
            return
        finally:
            self._unread.give_back(self._held)


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
