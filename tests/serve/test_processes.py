"""Real servers: another project's client, a worker that is killed, a shutdown while requests are open."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import uvicorn

from credalens import wrap
from credalens.core.scores import SCORES
from credalens.serve import app
from tests.serve.messages import request
from tests.strategies import batch_of

SECONDS = 120  # for a machine that has much else to do
PROBS = batch_of("flat", 3, 4, 5)
MESSAGE = request({"probs": PROBS}, ["total"])


@contextmanager
def running(folder, *command):
    """A server, and the port that it listens on."""
    path = folder / "server.log"
    with path.open("wb") as log:
        server = subprocess.Popen([sys.executable, *command], stderr=log)
    try:
        eventually(lambda: port_in(path) or server.poll() is not None)
        assert server.poll() is None, path.read_text()
        eventually(lambda: ask(port_in(path), "GET", "/v2/health/ready")[0] == 200)
        yield server, port_in(path)
        server.send_signal(signal.SIGTERM)
        server.wait(SECONDS)
    finally:
        server.kill()
        server.wait(SECONDS)


def port_in(log):
    """The port that a server's log names, or None."""
    found = re.search(r"running on http://127\.0\.0\.1:(\d+) ", log.read_text())
    return found and int(found[1])


def ask(port, method, path, message=None):
    """Status and body of one call on a connection of its own; None and nothing where there was no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request(method, path, *(() if message is None else (message.content, message.headers)))
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return None, b""
    finally:
        connection.close()


def infer(port):
    return ask(port, "POST", "/v2/models/credal/infer", MESSAGE)


def eventually(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers(server):
    """The processes of a server that answer requests."""
    return {pid for pid in children(server.pid) if "spawn_main" in command_line(pid)}


def children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def total_of(body):
    return json.loads(body)["outputs"][0]["data"]


def test_triton_client_and_a_killed_worker(tmp_path):
    """Every endpoint with NVIDIA's client, JSON and binary; then a worker dies under load, and every request is answered."""
    with running(tmp_path, "-m", "credalens", "serve", "--port", "0", "--workers", "2") as (server, port):
        check_with_triton(port)
        for _ in range(4):  # whichever worker is asked
            eventually(lambda: (counted(port, "200"), counted(port, "400")) == (6, 1))
        check_killed_worker(server, port)
        eventually(lambda: counted(port, "200") > 6)  # what a dead one has counted still counts


def check_with_triton(port):
    triton = pytest.importorskip("tritonclient.http")
    client = triton.InferenceServerClient(f"127.0.0.1:{port}", network_timeout=SECONDS, connection_timeout=SECONDS)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("credal")
    assert client.is_model_ready("credal", "1")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    metadata = client.get_model_metadata("credal", "1")
    assert {output["name"] for output in metadata["outputs"]} >= {
        *SCORES,
        "probability",
        "lower",
        "upper",
        "prediction",
        "set",
    }
    wanted = wrap(PROBS)
    for binary_in in (False, True):
        tensor = triton.InferInput("probs", list(PROBS.shape), "FP64")
        tensor.set_data_from_numpy(PROBS, binary_data=binary_in)
        for binary_out in (False, True):
            outputs = [
                triton.InferRequestedOutput(name, binary_data=binary_out) for name in ("lower", "epistemic", "set")
            ]
            result = client.infer("credal", [tensor], outputs=outputs, request_id="r")
            np.testing.assert_array_equal(result.as_numpy("lower"), wanted.lower)
            np.testing.assert_array_equal(result.as_numpy("epistemic"), wanted.epistemic)
            np.testing.assert_array_equal(result.as_numpy("set"), wanted.predict_set())
        np.testing.assert_array_equal(client.infer("credal", [tensor]).as_numpy("total"), wanted.total)
    tensor.set_data_from_numpy(np.full_like(PROBS, 0.5))
    with pytest.raises(Exception, match="row 0, member 0: it sums to"):
        client.infer("credal", [tensor], model_version="1")
    client.close()


def counted(port, status):
    """The answers of this status in the metrics of all workers."""
    text = ask(port, "GET", "/metrics")[1].decode()
    found = re.search(rf'^credalens_requests_total\{{.*status="{status}".*\}} (.*)$', text, re.MULTILINE)
    return float(found[1]) if found else 0


def check_killed_worker(server, port, workers=workers, broken=None):
    """``broken`` is the status of a request whose worker died before it had answered."""
    eventually(lambda: len(workers(server)) == 2)
    killed, answered, stop, wanted = min(workers(server)), [], threading.Event(), wrap(PROBS).total.tolist()

    def load():
        lost = 0
        while not stop.is_set():
            status, body = infer(port)
            lost += status == broken
            answered.append(status == broken or total_of(body) == wanted)
            time.sleep(0.05)  # leaves the cores to the worker that starts
        return lost

    with ThreadPoolExecutor(3) as pool:
        clients = [pool.submit(load) for _ in range(3)]
        try:
            eventually(lambda: len(answered) > 10)
            os.kill(killed, signal.SIGKILL)
            eventually(lambda: len(workers(server) - {killed}) == 2)
            seen = len(answered)
            eventually(lambda: len(answered) > seen + 10)
        finally:
            stop.set()
    assert all(answered)
    assert max(client.result() for client in clients) <= 1  # the request that was open when its worker died


GATED = """
import sys, time
from pathlib import Path
import numpy as np, uvicorn
from credalens.serve import Limits, app

def members(x):
    while not Path(sys.argv[1]).exists():
        time.sleep(0.01)
    return np.full((2, len(x), 3), 1 / 3)

uvicorn.run(app(members, name="credal", limits=Limits(queue=4)), port=0, access_log=False)
"""


def test_a_shutdown_answers_what_was_taken(tmp_path):
    message = request({"x": np.zeros((1, 2))}, ["prediction"])
    with running(tmp_path, "-c", GATED, str(tmp_path / "open")) as (server, port), ThreadPoolExecutor(5) as pool:
        clients = [pool.submit(ask, port, "POST", "/v2/models/credal/infer", message) for _ in range(5)]
        eventually(lambda: any(client.done() for client in clients))  # the fifth is sent away: four are taken
        server.send_signal(signal.SIGTERM)
        eventually(lambda: not accepts(port))
        (tmp_path / "open").touch()
        assert sorted(client.result()[0] for client in clients) == [200] * 4 + [503]
        server.wait(SECONDS)


def test_a_shutdown_under_load_answers_what_was_taken():
    """Clients ask without pause, each again on the same connection, until nobody listens any more."""
    taken, numbers = set(), itertools.count()

    async def application(scope, receive, send):
        async def received():
            message = await receive()
            if message["type"] == "http.request" and not message["more_body"]:
                taken.add(int(dict(scope["headers"])[b"number"]))
            return message

        await served(scope, received if scope["type"] == "http" else receive, send)

    def load():
        while (answers := answers_until_closed(port, numbers)) is not None:
            answered.update(answers)

    def members(x):
        time.sleep(0.2)  # longer than uvicorn waits in any case, so that it has to wait for answers
        return np.full((2, len(x), 3), 1 / 3)

    served, answered = app(members, name="credal", observers=[]), set()
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        with ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(load) for _ in range(4)]
            eventually(lambda: len(taken) > 8)
            server.handle_exit(signal.SIGTERM, None)
        assert [client.result() for client in clients] == [None] * 4
    finally:
        server.should_exit = True
        thread.join(SECONDS)
    assert not thread.is_alive()
    assert answered == taken


def answers_until_closed(port, numbers):
    """The requests that were answered on one connection before it was closed; None where none is accepted."""
    message, answered = request({"x": np.zeros((1, 2))}, ["prediction"]), []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.connect()
    except ConnectionRefusedError:
        return None
    except ConnectionError:
        return []
    try:
        while True:
            number = next(numbers)
            headers = message.headers | {"Number": str(number)}
            connection.request("POST", "/v2/models/credal/infer", message.content, headers)
            response = connection.getresponse()
            assert (response.status, json.loads(response.read())["outputs"][0]["data"]) == (200, [0])
            answered.append(number)
    except ConnectionError:  # what http.client raises for a connection closed before an answer begins is one too
        return answered
    finally:
        connection.close()


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
    except OSError:
        return False
    return True
