"""Room for connections, requests and unread answers, and who gives way when there is none left."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request

from credalens.serve.protocol import RequestError

MOST: Final = 4096  # connections of a process, where the system allows it as many
RESERVED: Final = 64  # descriptors that are kept for everything else
GRACE: Final = 1.0  # seconds until a body may be called slow
SLOW: Final = 1024  # bytes per second below which it is
UNREAD: Final = 512 << 20  # bytes of long answers that are not yet read
READING: Final = 10.0  # seconds until a reader may be called slow
SLOW_READING: Final = 1 << 20  # bytes per second below which it is


def arrives_slowly(received: int, seconds: float) -> bool:
    """Whether a body arrives too slowly to keep its place."""
    return seconds > GRACE and received < SLOW * seconds


def is_read_slowly(read: int, seconds: float) -> bool:
    """Whether a long answer is read too slowly to keep its place."""
    return seconds > READING and read < SLOW_READING * seconds


@dataclass(eq=False)
class Place:
    """Room for a request until it is answered, or for a long answer until it is read.

    :ivar is_slow: says of bytes and seconds whether the client is slow.
    :ivar since: when the client could begin to send or to read.
    :ivar moved: bytes that it has sent or read.
    :ivar limit: until when it may do so; None before that, and when the body has arrived.
    """

    size: int
    is_slow: Callable[[int, float], bool]
    since: float = 0.0
    moved: int = 0
    limit: asyncio.Timeout | None = field(default=None, repr=False)


class Room:
    """Holds places up to a total size. If there is no room, the oldest whose client is slow gives way, as if timed out.

    Otherwise as many clients as there is room for could keep all others away by one byte each.
    """

    def __init__(self, most: int, refusal: str) -> None:
        self.most, self._refusal = most, refusal
        self._taken: dict[Place, None] = {}  # in the order of their arrival

    def take(self, place: Place) -> None:
        """Take room for a place, which may be larger than all room if it is alone; refuses with 503 if there is none."""
        now = asyncio.get_running_loop().time()
        while self._taken and sum(taken.size for taken in self._taken) + place.size > self.most:
            for taken in self._taken:
                limit = taken.limit
                if limit and not limit.expired() and taken.is_slow(taken.moved, now - taken.since):
                    limit.reschedule(now)
                    self.give_back(taken)
                    break
            else:
                raise RequestError(self._refusal, status=503)
        self._taken[place] = None

    def give_back(self, place: Place) -> None:
        """Give the room of a place back, if it is still taken."""
        self._taken.pop(place, None)


async def read_body(request: Request, limit: int, place: Place, /) -> bytes:
    """The whole body, or a refusal as soon as it is known to be too large; ``place`` counts what has arrived."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise RequestError(
            f"a body with Content-Encoding {encoding!r:.40} is not supported; send it uncompressed.", status=415
        )

    def check(size: int) -> None:
        if size > limit:
            raise RequestError(f"the body is larger than {limit:,} bytes; send fewer rows at a time.", status=413)

    declared = request.headers.get("content-length", "0")
    check(int(declared) if declared.isdigit() else 0)
    parts = []
    async for part in request.stream():
        place.moved += len(part)
        check(place.moved)
        parts.append(part)
    place.limit = None
    return b"".join(parts)


def most_connections() -> int:
    """The number of connections for which this process has descriptors."""
    if sys.platform == "win32":
        return MOST
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if allowed == resource.RLIM_INFINITY else max(min(MOST, allowed - RESERVED), 1)


def most_requests(queue: int) -> int:
    """The number of requests that may wait: at most half of the connections, so that one can be closed for a new one."""
    return max(min(queue, most_connections() // 2), 1)
