"""A Ray of our own listens on the loopback only, and nobody gets in without its token, whatever the environment says."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Timer

import pytest

from credalens.engines.cluster import MANY_NODES
from tests.engines.sockets import family, listening
from tests.engines.waiting import PATIENCE

pytest.importorskip("ray", reason="Ray is not installed: pip install 'credalens[ray]'")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# Ray is imported first, so that it has read its environment by then.
OURS = """
import ray
from credalens.engines.cluster import ray_cluster

with ray_cluster(workers=1, object_store=100 << 20):
    ray.get(ray.remote(lambda: 0).remote())
    print(ray.get_runtime_context().gcs_address, flush=True)
    input()
"""
CLIENT = "import sys, ray; ray.init(address=sys.argv[1]); print('connected', flush=True)"


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """The process that started it, and its address."""
    home = tmp_path_factory.mktemp("home")  # Ray keeps its token there
    environment = {**os.environ, "HOME": str(home), "RAY_AUTH_MODE": "disabled"}
    environment.pop("RAY_ADDRESS", None)
    run = [sys.executable, "-c", OURS]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process.pid, process.stdout.readline().strip()
        process.communicate("\n")
    assert process.returncode == 0


def test_it_listens_on_the_loopback_only(ours):
    pid, address = ours
    addresses = list(listening(family(pid)))
    assert len(addresses) >= 5  # control store, node manager, object manager, worker, driver
    assert {str(a.ipv4_mapped) for a in addresses} == {"127.0.0.1"}
    assert address.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    "token", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64}]
)
def test_a_client_without_the_token_is_refused(ours, token, tmp_path):
    environment = {
        **os.environ,
        **token,
        "HOME": str(tmp_path),
        MANY_NODES: "0",
    }  # else it asks at the network's address
    run = [sys.executable, "-c", CLIENT, ours[1]]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as client:
        late = Timer(PATIENCE, client.kill)
        late.start()
        answer = next((line for line in client.stdout if "Unauthenticated" in line or "connected" in line), "none")
        late.cancel()
        client.kill()  # it would go on trying for twenty seconds
    assert "InvalidAuthToken" in answer
