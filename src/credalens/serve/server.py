"""Server: uvicorn's, which loses no request when it ends."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.responses import JSONResponse

from credalens.serve.connection import SILENCE, Connection
from credalens.serve.listening import any_waiting, refuse_new
from credalens.serve.places import most_connections

LOG: Final = logging.getLogger("uvicorn.error")

STARTUP_FAILURE: Final = 3
"""The exit code of a process that could not begin, as uvicorn has it."""

IDLE: Final = 5.0
"""Seconds for which a connection stays open without a request, also while the server ends: who asks within them is answered."""

QUIET: Final = 0.25
"""Seconds without a new connection after which all handshakes that had begun are taken to have ended."""

STEP: Final = 0.01


class Drain:
    """ASGI middleware: once the server ends, it is not ready, and every answer says that its connection closes."""

    def __init__(self) -> None:
        self.app: Any = None
        self.begun = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif self.begun and scope["path"].endswith("/ready"):
            await JSONResponse({"ready": False}, 503, {"Connection": "close"})(scope, receive, send)
        else:
            await self.app(scope, receive, partial(self._send, send))

    async def _send(self, send: Any, message: Any) -> None:
        if self.begun and message["type"] == "http.response.start":
            message = message | {"headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)


class Server(uvicorn.Server):
    """Serves on sockets that are bound already; ``make`` makes the application, with which the server is ready."""

    def __init__(
        self, make: Callable[[], Any], /, *, timeout: int, signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM),
        **options: Any,
    ) -> None:  # fmt: skip
        self.drain, self._signals = Drain(), signals
        Connection.most = most_connections()

        def application() -> Drain:
            self.drain.app = make()
            return self.drain

        config = uvicorn.Config(
            application,
            factory=True,
            interface="asgi3",
            http=Connection,
            ws="none",
            lifespan="on",
            access_log=False,
            server_header=False,
            timeout_keep_alive=int(IDLE),
            timeout_graceful_shutdown=timeout,
            **options,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order at a signal, after which the process goes on: its exit code says that all went well."""
        before = {number: signal.signal(number, self.handle_exit) for number in self._signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

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
        """Look after connections every second."""
        if counter % 10 == 0:
            self._look()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer everybody who has connected, and those connections' next requests, then end."""
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
        """Go on accepting until nobody waits: whoever is in the backlog when it is closed is sent away with a reset."""
        loop, refusing = asyncio.get_running_loop(), refuse_new(sockets)
        quiet_since = loop.time()
        while loop.time() < last and not self.force_exit:
            if any_waiting(sockets):
                quiet_since = loop.time()
            elif not refusing or loop.time() - quiet_since > QUIET:
                return
            await asyncio.sleep(STEP)

    async def _answer_all(self, idle_until: float, last: float) -> None:
        """Wait for answers. Who is connected may still ask for a while, and is told then that the connection closes."""
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
            self._look()
            await asyncio.sleep(STEP)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.look(now)
