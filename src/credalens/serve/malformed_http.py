"""What is no HTTP is refused as everything else: as JSON with an ``error``. uvicorn alone would answer in plain text."""

from __future__ import annotations

import json
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

BAD_REQUEST: Final = b"HTTP/1.1 400 Bad Request\r\n"


class JsonAnswers:
    """What a class of uvicorn that reads HTTP answers to what it cannot read."""

    server_state: Any
    transport: Any

    def send_400_response(self, msg: str) -> None:
        """Refuse what came, and close the connection, since nobody knows where the next request begins."""
        body = json.dumps({"error": msg}).encode()
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(BAD_REQUEST + lines + b"\r\n" + body)
        self.transport.close()


class JsonErrors(JsonAnswers, AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """For uvicorn's option ``http``: the parser that it would choose itself."""
