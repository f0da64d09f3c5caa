"""Clients that ask one server again and again: a connection each, kept open, the next request when the answer is complete."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
PATIENCE: Final = 60  # seconds


@dataclass(frozen=True)
class Counted:
    """What clients saw in some seconds.

    :ivar latencies: in seconds, of each answer.
    :ivar failures: answers with another status than 200.
    """

    seconds: float
    latencies: list[float]
    failures: int


@dataclass
class Client(asyncio.Protocol):
    """One connection. It reads no more of an answer than it needs to know where it ends."""

    request: bytes
    latencies: list[float] = field(default_factory=list)
    failures: int = 0
    answer: bytes = b""
    last: bool = False  # whether nothing is asked after the answer to come
    done: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: float = 0.0
    _buffer: bytearray = field(default_factory=bytearray)
    _end: int = 0  # of the headers
    _length: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._asked = time.perf_counter()
        self._transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """A part of the answer, or the rest of it."""
        self._buffer += data
        if not self._end and (head := self._buffer.find(b"\r\n\r\n")) >= 0:
            self._length = _length(bytes(self._buffer[:head]))
            self._end = head + 4
        if self._end and self._complete():
            self._finish()

    def _complete(self) -> bool:
        if self._length is None:
            return self._buffer.endswith(LAST_CHUNK)
        return len(self._buffer) >= self._end + self._length

    def _finish(self) -> None:
        self.latencies.append(time.perf_counter() - self._asked)
        self.failures += not self._buffer.startswith(b"HTTP/1.1 200")
        self.answer = bytes(self._buffer)
        self._buffer.clear()
        self._end = 0
        if self.last:
            self.done.set()
        elif not self._transport.is_closing():
            self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        """Without an answer, unless the time was over."""
        self.failures += not self._transport.is_closing()
        self.done.set()


def _length(head: bytes) -> int | None:
    """Of the body; None where it comes in chunks."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return None


def body(answer: bytes) -> bytes:
    """The body of an answer, its chunks joined."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    if _length(head) is not None:
        return rest
    chunks = []
    while rest != LAST_CHUNK[2:]:
        size, _, rest = rest.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return b"".join(chunks)


def post(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A request as it goes over the wire."""
    lines = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(body))} | headers
    return "".join([f"POST {path} HTTP/1.1\r\n", *(f"{k}: {v}\r\n" for k, v in lines.items()), "\r\n"]).encode() + body


def load(port: int, request: bytes, clients: int, seconds: float) -> Counted:
    """Let so many clients ask a server for some seconds, and wait for what they have asked by then."""
    return asyncio.run(_load(port, request, clients, seconds))


async def _load(port: int, request: bytes, clients: int, seconds: float) -> Counted:
    loop = asyncio.get_running_loop()
    begin = time.perf_counter()
    pairs = [await loop.create_connection(lambda: Client(request), "127.0.0.1", port) for _ in range(clients)]
    await asyncio.sleep(seconds)
    for _, client in pairs:
        client.last = True
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(client.done.wait() for _, client in pairs))
    elapsed = time.perf_counter() - begin
    latencies = [latency for _, client in pairs for latency in client.latencies]
    failures = sum(client.failures for _, client in pairs)
    for transport, _ in pairs:
        transport.abort()
    return Counted(elapsed, latencies, failures)


def first_answer(port: int, request: bytes) -> bytes:
    """The whole answer to one request."""

    async def ask() -> bytes:
        loop = asyncio.get_running_loop()
        transport, client = await loop.create_connection(lambda: Client(request, last=True), "127.0.0.1", port)
        async with asyncio.timeout(PATIENCE):
            await client.done.wait()
        transport.abort()
        return client.answer

    return asyncio.run(ask())
