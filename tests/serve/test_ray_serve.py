"""The same application on a Ray started for the purpose: a replica is killed under load, and is replaced."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from tests.engines.sockets import family, listening
from tests.serve.test_processes import check_killed_worker, children, command_line, running

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None or find_spec("fastapi") is None, reason="Ray Serve is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def replicas(server):
    """Children of Ray's node manager, which is a child of the server."""
    processes = (pid for child in children(server.pid) for pid in children(child))
    return {pid for pid in processes if command_line(pid).startswith("ray::ServeReplica")}


def test_a_killed_replica_loses_no_more_than_its_open_requests(tmp_path, monkeypatch):
    """A client that sends again what got 500 has all answers; and nothing listens to other machines."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    command = ["-m", "credalens", "serve", "--engine", "ray", "--workers", "2", "--port", "0"]
    with running(tmp_path, *command) as (server, port):
        check_killed_worker(server, port, replicas, broken=500)
        assert all(address.ipv4_mapped.is_loopback for address in listening(family(server.pid)))
