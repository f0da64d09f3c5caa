"""What is no HTTP at all is refused as JSON too."""

from __future__ import annotations

import json
import socket
import threading

import uvicorn

from credalens.serve import app, member_outputs
from credalens.serve.server import Connection

MALFORMED = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),  # TLS to a port without it
    b"GET\r\n\r\n",
    b"POST /v2/models/credal/infer HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n",
    b"GET /v2 HTTP/1.1\r\nHo st: a\r\n\r\n",
    b"POST /v2/models/credal/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
]


def test_malformed_http_is_refused_in_json():
    config = uvicorn.Config(app(member_outputs(), observers=[]), port=0, http=Connection, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.02)
            assert thread.is_alive()
        address = server.servers[0].sockets[0].getsockname()
        for text in MALFORMED:
            head, _, body = answer(address, text).partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            assert lines[0].startswith(b"http/1.1 400"), text
            assert b"content-type: application/json" in lines
            assert f"content-length: {len(body)}".encode() in lines
            assert list(json.loads(body)) == ["error"]
    finally:
        server.should_exit = True
        thread.join()


def answer(address, text):
    """All that comes until the server closes the connection."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(text)
        parts = []
        while part := connection.recv(4096):
            parts.append(part)
        return b"".join(parts)
