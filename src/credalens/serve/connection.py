"""Connection: what one client may hold of a server - bytes of headers, and time in which nothing is being answered."""

from __future__ import annotations

import json
from collections.abc import Collection
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from credalens.serve.places import MOST, hardly_arrives

HEAD_BYTES: Final = 64 << 10
"""Most bytes of a request line and its headers; as many again may frame a body that comes in chunks."""

SEPARATORS: Final = len(": \r\n")

SILENCE: Final = 10.0
"""Seconds in which the headers of a request must arrive, and in which a client must read something of its answer."""


class Connection(HttpToolsProtocol):
    """uvicorn's connection with limits, which uvicorn has for none of these."""

    most = MOST
    _numbers = count()

    def connection_made(self, transport: Any) -> None:
        """Take it; where there are too many, another one goes that does nothing."""
        super().connection_made(transport)
        self._framing = self._unread = self._received = 0
        self._begun, self._number = False, next(self._numbers)
        self._since = self._asked = self.loop.time()
        self._refusal: tuple[HTTPStatus, str] | None = None
        if len(self.connections) > self.most:
            gone = _to_give_up(self, self.connections, self.loop.time())
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
        if len(self.url) + sum(len(name) + len(value) + SEPARATORS for name, value in self.headers) > HEAD_BYTES:
            self._refusal = _too_large()
            raise httptools.HttpParserError  # uvicorn sends its refusal then
        self._since = self._asked = self.loop.time()
        self._begun, self._received = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body. It pays for as many bytes that frame it: sizes of chunks, but no endless trailer."""
        self._framing = max(self._framing - 2 * len(body), -HEAD_BYTES)
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request."""
        self._framing = 0
        super().on_message_complete()

    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def claim(self, now: float) -> tuple[int, float, int]:
        """What it stays for: nothing, an answer that is read, one that is made; since when; and its number, for equal times."""
        if self.is_silent():
            return 0, self._since, self._number
        if self.cycle.more_body and hardly_arrives(self._received, now - self._asked):
            return 0, self._asked, self._number
        return (1 if self.cycle.response_started else 2), self._asked, self._number

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


def _to_give_up(new: Any, connections: Collection[Any], now: float) -> Any:
    """The connection to give up: the one silent for longest, else the oldest that reads its answer.

    The new one goes only where all others wait for answers, which fewer may than may connect.
    """
    if not (others := [x for x in connections if x is not new and x.claim(now)[0] < 2]):
        return new
    return min(others, key=lambda x: x.claim(now))


def _too_large() -> tuple[HTTPStatus, str]:
    return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the headers are larger than {HEAD_BYTES:,} bytes."
