"""A server that ends: nobody who has connected goes without an answer, and nothing of it stays."""

from __future__ import annotations

import http.client
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from credalens import wrap
from tests.serve.test_processes import MESSAGE, PROBS, SECONDS, ask, eventually, infer, running, workers

TOTAL = wrap(PROBS).total.tolist()
SERVE = ("-m", "credalens", "serve", "--port", "0", "--workers")


@pytest.mark.parametrize("number", [1, 2])
def test_clients_that_do_not_pause_lose_nothing(tmp_path, number):
    """Eight of them: half keep their connection as long as they may, half make one for each request."""
    begun = Barrier(9)
    with running(tmp_path, *SERVE, str(number)) as (server, port), ThreadPoolExecutor(8) as pool:
        eventually(lambda: number == 1 or len(workers(server)) == number)
        clients = [pool.submit(ask_until_refused, port, begun, keep=bool(i % 2)) for i in range(8)]
        begun.wait(SECONDS)
        server.send_signal(signal.SIGTERM)
        lost = [client.result() for client in clients]
        assert server.wait(SECONDS) == 0
    assert lost == [0] * 8


def ask_until_refused(port, begun, *, keep):
    """How many requests had no answer, of those on connections that were accepted."""
    lost = asked = 0
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        try:
            connection.connect()
        except ConnectionRefusedError:
            return lost
        closes = False
        try:
            while not closes:
                headers = MESSAGE.headers | ({} if keep else {"Connection": "close"})
                connection.request("POST", "/v2/models/credal/infer", MESSAGE.content, headers)
                response = connection.getresponse()
                assert (response.status, json.loads(response.read())["outputs"][0]["data"]) == (200, TOTAL)
                closes = response.will_close
                if (asked := asked + 1) == 20:
                    begun.wait(SECONDS)
        except (OSError, http.client.HTTPException):
            lost += 1
        finally:
            connection.close()


def test_an_open_connection_is_told_that_it_closes(tmp_path):
    """Who is connected may ask once more: for the health, which is none, or for an answer, which is the last."""
    with running(tmp_path, *SERVE, "2") as (server, port):
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS) for _ in range(2)]
        for connection in connections:
            connection.request("GET", "/v2/health/live")
            assert not read(connection)[0].will_close
        server.send_signal(signal.SIGTERM)
        eventually(lambda: infer(port)[0] is None)
        connections[0].request("GET", "/v2/health/ready")
        connections[1].request("POST", "/v2/models/credal/infer", MESSAGE.content, MESSAGE.headers)
        (ready, state), (response, answer) = (read(connection) for connection in connections)
        assert (ready.status, state, ready.will_close) == (503, {"ready": False}, True)
        assert (response.status, answer["outputs"][0]["data"], response.will_close) == (200, TOTAL, True)
        assert server.wait(SECONDS) == 0


def read(connection):
    response = connection.getresponse()
    return response, json.loads(response.read())


def test_workers_end_with_a_parent_that_is_killed(tmp_path, monkeypatch):
    """And take its folder with them."""
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    with running(tmp_path, *SERVE, "2") as (server, port):
        eventually(lambda: len(workers(server)) == 2)
        left = workers(server)
        assert len(list(folder.iterdir())) == 1
        server.kill()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
        assert list(folder.iterdir()) == []
        assert ask(port, "GET", "/v2/health/live")[0] is None


def test_a_worker_minds_no_signal_that_its_parent_gets_too(tmp_path):
    """A terminal and a service manager send it to all of them; only the parent knows when nobody is waiting any more."""
    with running(tmp_path, *SERVE, "2") as (server, port):
        eventually(lambda: len(workers(server)) == 2)
        before = workers(server)
        for _ in range(4):  # both have begun: they are answering
            assert infer(port)[0] == 200
        eventually(lambda: all(ignores(pid, signal.SIGTERM) for pid in before))
        for pid in before:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        assert infer(port)[0] == 200
        assert workers(server) == before
        server.send_signal(signal.SIGINT)
        assert server.wait(SECONDS) == 0


def ignores(pid, number):
    """Whether a process ignores a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")), 16)
    return bool(mask >> (number - 1) & 1)
