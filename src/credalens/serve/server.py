"""uvicorn's server, which here loses no request when it ends, its connections with limits, and the sockets it listens on."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import logging
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import httptools
import uvicorn
from starlette.responses import JSONResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from credalens.serve.places import MOST, arrives_slowly, most_connections

LOG: Final = logging.getLogger("uvicorn.error")

STARTUP_FAILURE: Final = 3  # the exit code of a process that could not begin, as uvicorn has it
IDLE: Final = 5.0  # seconds for which a connection stays open without a request, also while the server ends
QUIET: Final = 0.25  # seconds without a new connection after which all handshakes are taken to have ended
STEP: Final = 0.01
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
# A classic BPF program, run on each TCP header: flags & (SYN | ACK) == SYN ? drop : accept.
NO_SYN: Final = ((0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))
SO_ATTACH_FILTER: Final = 26  # of Linux; Python's socket has no name for it
HEAD_BYTES: Final = 64 << 10  # of a request line and its headers; as many again may frame a body that comes in chunks
SEPARATORS: Final = len(": \r\n")
SILENCE: Final = 10.0  # seconds in which headers must arrive, and in which a client must read something of its answer
TOO_LARGE: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the headers are larger than {HEAD_BYTES:,} bytes."


def bound_sockets(host: str, port: int, /) -> list[socket.socket]:
    """A socket for each address of a host, on one port; 0 chooses a free one. They do not listen yet."""
    sockets, failure = list[socket.socket](), OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, address in addresses:
        try:
            sockets.append(_bound(family, kind, protocol, (address[0], port, *address[2:])))
        except OSError as error:
            failure = OSError(error.errno, f"cannot listen on {host}, port {port}: {error.strerror}")
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # not every system has both IPv4 and IPv6
                break
        port = port or (sockets[0].getsockname()[1] if sockets else 0)
    else:
        if sockets:
            return sockets
    for listener in sockets:
        listener.close()
    raise failure


def _bound(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, kind, protocol)  # named: asyncio switches TCP's delays off only where it is
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def refuse_new(sockets: Sequence[socket.socket], /) -> bool:
    """Let no further connection begin, without touching those that have: on Linux, where this is possible.

    Its client's system tries again after a second, and is refused then, since nobody listens any more.
    """
    if sys.platform != "linux":
        return False
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in NO_SYN))
    attached = struct.pack("HP", len(NO_SYN), ctypes.addressof(program))
    try:
        for sock in sockets:
            sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
    except OSError:  # a kernel or a sandbox without it
        return False
    return True


@contextmanager
def handling(signals: Sequence[int], handler: Callable[[int, Any], Any], /) -> Iterator[None]:
    """Let a function handle signals for the time of the block."""
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class Connection(HttpToolsProtocol):
    """uvicorn's connection with limits, which uvicorn has for none of these."""

    most = MOST
    _numbers = count()

    def connection_made(self, transport: Any) -> None:
        """Accept it. If there are too many, close the one that is silent for longest, else the oldest that reads an answer.

        The new one is closed only if all others wait for answers, which fewer may than may connect.
        """
        super().connection_made(transport)
        self._framing = self._unread = self._received = 0
        self._begun, self._number = False, next(self._numbers)
        self._since = self._asked = self.loop.time()
        self._refusal = HTTPStatus.BAD_REQUEST, "this is no HTTP request that can be read."
        if len(self.connections) > self.most:
            now = self.loop.time()
            connections: set[Any] = self.connections
            others = [x for x in connections if x is not self and x.claim(now)[0] < 2]
            gone = min(others, key=lambda x: x.claim(now), default=self)
            connections.discard(gone)
            gone.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse data, and count the bytes that are no body."""
        self._framing += len(data)
        super().data_received(data)
        if self._framing > HEAD_BYTES and not self.transport.is_closing():
            self._refusal = TOO_LARGE
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """Note the first byte of a request."""
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Refuse headers that are too large; else begin to answer."""
        if len(self.url) + sum(len(name) + len(value) + SEPARATORS for name, value in self.headers) > HEAD_BYTES:
            self._refusal = TOO_LARGE
            raise httptools.HttpParserError  # uvicorn sends its refusal then
        self._since = self._asked = self.loop.time()
        self._begun, self._received = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Receive a part of a body, which allows as many bytes that frame it: sizes of chunks, but no endless trailer."""
        self._framing = max(self._framing - 2 * len(body), -HEAD_BYTES)
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of a request."""
        self._framing = 0
        super().on_message_complete()

    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def claim(self, now: float) -> tuple[int, float, int]:
        """The claim to stay: 2 if an answer is made, 1 if one is read, else 0; since when; and the connection's number."""
        if self.is_silent():
            return 0, self._since, self._number
        if self.cycle.more_body and arrives_slowly(self._received, now - self._asked):
            return 0, self._asked, self._number
        return (1 if self.cycle.response_started else 2), self._asked, self._number

    def check(self, now: float) -> None:
        """Close it if its client has sent no whole headers, or has read nothing, for too long; called every second."""
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread or not (unread or self.is_silent()):
            self._unread, self._since = unread, now
        elif now - self._since <= SILENCE:
            return
        elif unread or self.transport.is_closing():
            self.transport.abort()
        elif self._begun:
            self._refusal = HTTPStatus.REQUEST_TIMEOUT, f"the headers did not arrive within {SILENCE:.0f} s."
            self.send_400_response("")
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request with an error in the protocol's form, and close."""
        status, error = self._refusal
        body = json.dumps({"error": error}).encode()
        head = (
            f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class Drain:
    """ASGI middleware: once the server ends, it is not ready, and every answer closes its connection."""

    def __init__(self) -> None:
        self.app: Any = None
        self.begun = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""

        async def send_closing(message: Any) -> None:
            if self.begun and message["type"] == "http.response.start":
                message = message | {"headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif self.begun and scope["path"].endswith("/ready"):
            await JSONResponse({"ready": False}, 503, {"Connection": "close"})(scope, receive, send)
        else:
            await self.app(scope, receive, send_closing)


class Server(uvicorn.Server):
    """Serves on sockets that are bound already; ``make`` makes the application, with which the server is ready."""

    def __init__(
        self, make: Callable[[], Any], /, *, timeout: int, signals: Sequence[int] = SIGNALS,
        **options: Any,
    ) -> None:  # fmt: skip
        self.drain, self._signals = Drain(), signals
        Connection.most = most_connections()

        def application() -> Drain:
            self.drain.app = make()
            return self.drain

        config = uvicorn.Config(
            application, factory=True, interface="asgi3", http=Connection, ws="none", lifespan="on", access_log=False,
            server_header=False, timeout_keep_alive=int(IDLE), timeout_graceful_shutdown=timeout, **options,
        )  # fmt: skip
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order at a signal, after which the process goes on: its exit code says that all went well."""
        with handling(self._signals, self.handle_exit):
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; a client has to say what it wants during the handshake of TLS too."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        config, loop = self.config, asyncio.get_running_loop()
        connection = partial(Connection, config, self.server_state, self.lifespan.state)
        tls: dict[str, Any] = {"ssl": config.ssl, "ssl_handshake_timeout": SILENCE} if config.ssl else {}
        self.servers = [
            await loop.create_server(connection, sock=sock, backlog=config.backlog, **tls) for sock in sockets or ()
        ]
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Check connections every second."""
        if counter % 10 == 0:
            self._check_connections()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer all who have connected, and the next requests on these connections, then end."""
        LOG.info("Shutting down")
        self.drain.begun = True
        sockets, loop = sockets or [], asyncio.get_running_loop()
        last = loop.time() + (self.config.timeout_graceful_shutdown or 0)
        await self._empty_backlog(sockets, last)
        for server in self.servers:
            server.close()
        for sock in sockets:
            sock.close()
        await self._answer_all(loop.time() + IDLE, max(last, loop.time() + IDLE))
        if not self.force_exit:
            await self.lifespan.shutdown()

    async def _empty_backlog(self, sockets: Sequence[socket.socket], last: float) -> None:
        """Accept until nobody waits: whoever is in the backlog when it is closed gets a reset."""
        loop, refusing = asyncio.get_running_loop(), refuse_new(sockets)
        quiet_since = loop.time()
        with selectors.DefaultSelector() as waiting:
            for sock in sockets:
                waiting.register(sock, selectors.EVENT_READ)
            while loop.time() < last and not self.force_exit:
                if waiting.select(0):
                    quiet_since = loop.time()
                elif not refusing or loop.time() - quiet_since > QUIET:
                    return
                await asyncio.sleep(STEP)

    async def _answer_all(self, idle_until: float, last: float) -> None:
        """Wait for answers. Clients may still ask on open connections for a while, and are told that these close."""
        state, loop = self.server_state, asyncio.get_running_loop()
        while (state.connections or state.tasks) and not self.force_exit:
            if (now := loop.time()) > last:
                LOG.error("%d requests are not answered in time", len(state.tasks))
                for task in state.tasks:
                    task.cancel(msg="the server ends")
                await asyncio.wait([*state.tasks, asyncio.create_task(asyncio.sleep(STEP))], timeout=1)
                return
            if now > idle_until:
                for connection in list(state.connections):
                    connection.shutdown()
            self._check_connections()
            await asyncio.sleep(STEP)

    def _check_connections(self) -> None:
        now = asyncio.get_running_loop().time()
        connections: list[Any] = list(self.server_state.connections)
        for connection in connections:
            connection.check(now)
