"""Connection: what one client may hold of a server - bytes of headers, and time in which nothing is being answered."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES: Final = 64 << 10
"""Most bytes of a request line and its headers; as many again may frame a body that comes in chunks."""

SILENCE: Final = 10.0
"""Seconds in which the headers of a request must arrive, and in which a client must read something of its answer."""

MOST: Final = 4096
"""Most connections of a process, where the system allows it as many."""

RESERVED: Final = 64
"""Descriptors that are kept for everything else."""


class Connection(HttpToolsProtocol):
    """uvicorn's connection with limits, which uvicorn has for none of these."""

    most = MOST

    def connection_made(self, transport: Any) -> None:
        """Take it; where there are too many, the one that has been silent for longest goes."""
        super().connection_made(transport)
        self._framing = self._unread = 0
        self._begun = False
        self._since = self.loop.time()
        self._refusal: tuple[HTTPStatus, str] | None = None
        if len(self.connections) > self.most:
            gone = _longest_silent(self.connections)
            self.connections.discard(gone)
            gone.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse it, and count what is no body."""
        self._framing += len(data)
        super().data_received(data)
        if self._framing > HEAD_BYTES and not self.transport.is_closing():
            self._refusal = _too_large()
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            self._refusal = _too_large()
            raise httptools.HttpParserError  # uvicorn sends its refusal then
        self._since, self._begun = self.loop.time(), False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body. It pays for as many bytes that frame it: sizes of chunks, but no endless trailer."""
        self._framing = max(self._framing - 2 * len(body), -HEAD_BYTES)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request."""
        self._framing = 0
        super().on_message_complete()

    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def has_asked(self) -> bool:
        """Whether there was a request."""
        return self.cycle is not None

    def silent_since(self) -> float:
        """When it was last busy, by the clock of the event loop."""
        return self._since

    def look(self, now: float) -> None:
        """Called every second: end it where its client has sent no whole headers, or has read nothing, for too long."""
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
        """Refuse what is no request, in the words of the protocol, and close."""
        status, error = self._refusal or (HTTPStatus.BAD_REQUEST, "this is no HTTP request that can be read.")
        body = json.dumps({"error": error}).encode()
        head = (
            f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def most_connections() -> int:
    """How many connections this process may have, so that its descriptors suffice for them."""
    if sys.platform == "win32":
        return MOST
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if allowed == resource.RLIM_INFINITY else max(min(MOST, allowed - RESERVED), 1)


def _longest_silent(connections: Collection[Any]) -> Any:
    """The connection to give up: one without a request, before one that may ask again, before one that is being answered."""
    return min(connections, key=lambda x: (not x.is_silent(), x.has_asked(), x.silent_since()))


def _too_large() -> tuple[HTTPStatus, str]:
    return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the headers are larger than {HEAD_BYTES:,} bytes."
