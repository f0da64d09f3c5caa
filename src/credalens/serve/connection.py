"""Connection: limits the bytes of headers, and the time without a request, that one client may take."""

from __future__ import annotations

import json
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from credalens.serve.places import MOST, arrives_slowly

HEAD_BYTES: Final = 64 << 10  # of a request line and its headers; as many again may frame a body that comes in chunks
SEPARATORS: Final = len(": \r\n")
SILENCE: Final = 10.0  # seconds in which headers must arrive, and in which a client must read something of its answer
TOO_LARGE: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the headers are larger than {HEAD_BYTES:,} bytes."


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
