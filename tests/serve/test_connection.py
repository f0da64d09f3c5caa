"""What one client may hold of a server: real sockets that send too much, too little, or never read."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from credalens.serve import Limits, app, member_outputs, places, responses
from credalens.serve import server as connections
from credalens.serve.server import Server
from tests.serve.messages import request
from tests.serve.test_processes import SECONDS, eventually

HEAD = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v2/models/credal/infer HTTP/1.1\r\nHost: localhost\r\n"
MESSAGE = request({"probs": np.full((2, 1, 4), 0.25)}, ["total"])
BODY = POST + b"Content-Length: %d\r\n\r\n" % len(MESSAGE.content) + MESSAGE.content
MIB = b"x" * (1 << 20)


@contextmanager
def serving(application=None, most=None):
    """A server in a thread, and a function that connects to it."""
    application = application or app(member_outputs(), limits=Limits(queue=4), observers=[])
    server = Server(lambda: application, host="127.0.0.1", port=0, timeout=SECONDS, signals=(), log_level="critical")
    if most is not None:
        connections.Connection.most = most
    listening, sockets = server.config.bind_socket(), []
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        eventually(lambda: server.started)

        def connect(*parts):
            sockets.append(client := socket.create_connection(listening_at, timeout=SECONDS))
            for part in parts:
                client.sendall(part)
            return client

        listening_at = listening.getsockname()
        yield connect
    finally:
        for client in sockets:
            client.close()
        server.should_exit = True
        thread.join(SECONDS)
    assert not thread.is_alive()


def answer(client):
    """Status, headers and content of one answer."""
    with client.makefile("rb") as file:
        return read_answer(file)


def read_answer(file):
    status = int(file.readline().split()[1])
    lines = iter(file.readline, b"\r\n")
    headers = {
        name.lower().decode(): value.strip().decode() for name, _, value in (line.partition(b":") for line in lines)
    }
    return status, headers, json.loads(file.read(int(headers["content-length"])))


def refused(client, parts):
    """The answer to a client that goes on sending until it cannot."""
    try:
        for part in parts:
            client.sendall(part)
        pytest.fail("it was all taken")
    except OSError:
        return client


def is_over(client):
    """Whether the other end has closed; waits until it has."""
    try:
        while client.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD, b"X: ", *[MIB] * 300],
        [HEAD, *[b"A: b\r\n" * 20_000] * 100],
        [b"GET /", *[MIB] * 300],
        [b"\r\n" * (1 << 20)] * 100,
        [POST, b"Transfer-Encoding: chunked\r\n\r\n1;", *[MIB] * 300],
        [POST, b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ", *[MIB] * 300],
        [POST, b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\nx\r\n" * 100_000] * 300],
    ],
    ids=["one header", "many headers", "a path", "empty lines", "an extension of a chunk", "a trailer", "single bytes"],
)
def test_what_is_no_body_has_a_limit(parts):
    with serving() as connect:
        assert is_over(refused(connect(), parts))
        assert answer(connect(HEAD + b"\r\n"))[0] == 200


def test_many_short_headers_count_with_what_separates_them():
    with serving() as connect:
        assert answer(connect(HEAD + b"X: y\r\n" * 20_000 + b"\r\n"))[0] == 431
        assert answer(connect(HEAD + b"X: y\r\n" * 10_000 + b"\r\n"))[0] == 200


@pytest.mark.parametrize("size", [connections.HEAD_BYTES - 100, connections.HEAD_BYTES, 200_000])
def test_headers_up_to_the_limit_are_read(size):
    with serving() as connect:
        status, headers, content = answer(connect(HEAD + b"X: " + b"x" * size + b"\r\n\r\n"))
    if size < connections.HEAD_BYTES:
        assert (status, content) == (200, {"live": True})
    else:
        assert (status, headers["connection"]) == (431, "close")
        assert content == {"error": "the headers are larger than 65,536 bytes."}


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_body_in_chunks_is_read(size):
    content = MESSAGE.content
    chunks = [content[i : i + size] for i in range(0, len(content), size)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""])
    with serving() as connect:
        client = connect(*[POST + b"Transfer-Encoding: chunked\r\n\r\n" + framed] * 3)
        with client.makefile("rb") as file:
            assert [read_answer(file)[0] for _ in range(3)] == [200] * 3


def test_what_is_no_http_is_refused_in_json():
    with serving() as connect:
        status, headers, content = answer(connect(b"what is this?\r\n\r\n"))
    assert (status, headers["content-type"], list(content)) == (400, "application/json", ["error"])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", None),
        (HEAD, 408),
        (BODY + HEAD, 408),
        (POST + b"Content-Length: 9\r\nContent-Encoding: br\r\n\r\nx", None),
    ],
    ids=["nothing", "half the headers", "half of the second headers", "half a body after its answer"],
)
def test_who_sends_too_little_is_sent_away(sent, status, monkeypatch):
    monkeypatch.setattr(connections, "SILENCE", 0.3)
    with serving() as connect:
        client = connect(sent)
        with client.makefile("rb") as file:
            if sent.startswith(POST):
                assert read_answer(file)[0] in {200, 415}
            if status is not None:
                assert read_answer(file)[0] == status
            assert file.read() == b""


def test_who_asks_again_and_again_may_stay(monkeypatch):
    monkeypatch.setattr(connections, "SILENCE", 0.5)
    with serving() as connect:
        client, since = connect(), time.monotonic()
        while time.monotonic() < since + 2.5:
            client.sendall(BODY)
            assert answer(client)[0] == 200


def test_a_slow_answer_is_waited_for(monkeypatch):
    monkeypatch.setattr(connections, "SILENCE", 0.2)
    opened = threading.Event()

    def members(x):
        assert opened.wait(SECONDS)
        return np.full((2, len(x), 3), 1 / 3)

    message = request({"x": np.zeros((1, 2))}, ["total"])
    with serving(app(members, name="credal", observers=[])) as connect:
        client = connect(POST + b"Content-Length: %d\r\n\r\n" % len(message.content) + message.content)
        threading.Timer(2.5, opened.set).start()
        assert answer(client)[0] == 200


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch):
    """Nor does it keep the answers to further requests of its client."""
    monkeypatch.setattr(connections, "SILENCE", 0.5)
    large = request({"probs": np.full((2, 10_000, 40), 1 / 40)}, ["probability", "lower", "upper"])
    asked = POST + b"Content-Length: %d\r\n\r\n" % len(large.content) + large.content
    with serving() as connect:
        client = connect(asked)
        client.recv(1)
        client.sendall(HEAD + b"\r\n")
        eventually(lambda: is_reset(client))
        assert answer(connect(BODY))[0] == 200


def has_closed(client):
    """Whether the other end has closed, of a connection on which nothing was sent."""
    return bool(select.select([client], [], [], 0)[0])


def is_reset(client):
    """Whether the other end has given up; reads nothing."""
    try:
        client.sendall(b"x")
    except OSError:
        return True
    return False


def test_silent_connections_make_room_for_those_that_ask():
    """One that is being answered stays; of the others the one goes that was silent for longest."""
    opened, begun = threading.Event(), threading.Event()

    def members(x):
        begun.set()
        assert opened.wait(SECONDS)
        return np.full((2, len(x), 3), 1 / 3)

    message = request({"x": np.zeros((1, 2))}, ["total"])
    with serving(app(members, name="credal", observers=[]), most=4) as connect:
        busy = connect(POST + b"Content-Length: %d\r\n\r\n" % len(message.content) + message.content)
        assert begun.wait(SECONDS)
        asked = connect(HEAD + b"\r\n")
        assert answer(asked)[0] == 200
        silent = [connect() for _ in range(20)]
        eventually(lambda: sum(has_closed(client) for client in silent) == 17)
        assert has_closed(asked)
        assert [n for n, client in enumerate(silent) if not has_closed(client)] == [17, 18, 19]
        assert answer(connect(HEAD + b"\r\n"))[0] == 200
        opened.set()
        assert answer(busy)[0] == 200


def test_connections_that_have_asked_keep_nobody_out():
    """Whoever is new has not asked yet, and is not the one to go for that."""
    with serving(most=4) as connect:
        asked = [connect(HEAD + b"\r\n") for _ in range(4)]
        assert [answer(client)[0] for client in asked] == [200] * 4
        for _ in range(3):
            client = connect()
            time.sleep(0.1)  # else its request may arrive with the connection
            client.sendall(HEAD + b"\r\n")
            assert answer(client)[0] == 200


@pytest.mark.parametrize("queue", [4, 100], ids=["more connections than places", "more places than connections"])
def test_bodies_that_hardly_arrive_keep_nobody_out(queue):
    """Nor do they where they hold all connections."""
    with serving(app(member_outputs(), limits=Limits(queue=queue), observers=[]), most=8) as connect:
        stalled = [connect(POST + b"Content-Length: 1000\r\n\r\nx") for _ in range(8)]
        time.sleep(places.GRACE + 0.2)
        for _ in range(3):
            client = connect()
            time.sleep(0.1)
            client.sendall(BODY)
            assert answer(client)[0] == 200
        assert sum(has_closed(client) for client in stalled) >= 3


def test_who_reads_slowly_makes_room():
    """Connections on which answers are read go where there are no silent ones."""
    large = request({"probs": np.full((2, 10_000, 40), 1 / 40)}, ["probability", "lower", "upper"])
    asked = POST + b"Content-Length: %d\r\n\r\n" % len(large.content) + large.content
    with serving(most=2) as connect:
        reading = [connect(asked) for _ in range(2)]
        assert all(client.recv(1) for client in reading)
        client = connect()
        time.sleep(0.1)
        client.sendall(HEAD + b"\r\n")
        assert answer(client)[0] == 200


def test_as_many_as_there_are_descriptors_for():
    resource = pytest.importorskip("resource")
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, allowed[1]))
        assert places.most_connections() == 256 - places.RESERVED
        assert (places.most_requests(128), places.most_requests(9)) == (96, 9)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
    assert places.most_connections() <= places.MOST


def test_bodies_that_hardly_arrive_give_way():
    """As many strangers as the queue is long send one byte each; whoever sends a whole request is answered."""
    with serving() as connect:
        stalled = [connect(POST + b"Content-Length: 1000\r\n\r\nx") for _ in range(4)]
        eventually(lambda: answer(connect(BODY))[0] == 200)
        assert answer(stalled[0])[0] == 408
        assert [answer(connect(BODY))[0] for _ in range(3)] == [200] * 3


def test_bodies_that_arrive_keep_their_place(monkeypatch):
    monkeypatch.setattr("credalens.serve.places.SLOW", 1)
    body = MESSAGE.content + b" " * 100_000
    with serving() as connect:
        begun = [connect(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body[:50_000]) for _ in range(4)]
        eventually(lambda: answer(connect(BODY))[0] == 503)
        time.sleep(1.5)  # longer than they need to be called slow
        assert answer(connect(BODY))[0] == 503
        for client in begun:
            client.sendall(body[50_000:])
            assert answer(client)[0] == 200


LARGE = request({"probs": np.full((2, 10_000, 40), 1 / 40)}, ["probability", "lower", "upper"])
ASKING = POST + b"Content-Length: %d\r\n\r\n" % len(LARGE.content) + LARGE.content


ROOM = 26 * 3 * 10_000 * 40
"""For one of them: it takes less once it is written, but two do not begin together."""


def test_unread_answers_have_a_limit(monkeypatch):
    """Who does not read keeps nobody from short answers, and from long ones only for as long as it may."""
    monkeypatch.setattr("credalens.serve.application.UNREAD", ROOM)
    with serving() as connect:
        reading = connect(ASKING)
        assert reading.recv(1)
        status, headers, content = answer(connect(ASKING))
        assert (status, headers.get("retry-after")) == (503, "1")
        assert content == {"error": "other clients have not read their long answers yet; try again."}
        assert answer(connect(BODY))[0] == 200
        reading.close()
        eventually(lambda: answer(connect(ASKING))[0] == 200)


def test_who_reads_slowly_gives_way_to_another_answer(monkeypatch):
    monkeypatch.setattr("credalens.serve.application.UNREAD", ROOM)
    monkeypatch.setattr(places, "READING", 0.2)
    monkeypatch.setattr(places, "SLOW_READING", 1 << 40)
    with serving() as connect:
        reading = connect(ASKING)
        assert reading.recv(1)
        time.sleep(0.3)
        assert answer(connect(ASKING))[0] == 200
        with reading.makefile("rb") as file:
            size = sum(map(len, iter(lambda: file.read(1 << 20), b"")))
        assert 0 < size < 6 * 3 * 10_000 * 40  # the beginning of an answer, whose numbers take 7 bytes each


@pytest.mark.parametrize("size", [0, 1, responses.PIECE - 1, responses.PIECE, responses.PIECE + 1, 3 * responses.PIECE])
def test_an_answer_is_handed_over_in_pieces(size):
    body, sent = bytes(range(256)) * (size // 256) + bytes(size % 256), []

    async def keep(message):
        sent.append(message)

    async def run():
        room, response = places.Room(10, "full"), responses.InferResponse([body, body], {})
        place, response.room = response.place, room
        place.size = 10
        room.take(place)
        await response({}, None, keep)
        assert place.moved == 2 * size
        room.take(places.Place(10, places.is_read_slowly))

    asyncio.run(run())
    assert b"".join(message.get("body", b"") for message in sent) == 2 * body
    assert all(len(message.get("body", b"")) <= responses.PIECE for message in sent)
    assert [message["more_body"] for message in sent[1:]] == [True] * (len(sent) - 2) + [False]
