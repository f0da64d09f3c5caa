"""A real Ray of several nodes on this machine, started when a test asks for it, for all such tests in a row."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.engines.waiting import PATIENCE, wait_until

SMALL = {"object_store_memory": 100 << 20, "include_log_monitor": False}
# A machine that refuses to answer is given up after a second and a half instead of fifteen.
LIVELY = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 300, "health_check_failure_threshold": 5}


WARM = "from credalens import wrap; print(wrap([[[0.2, 0.8]], [[0.6, 0.4]]], threads=1).epistemic[0])"


@pytest.fixture(scope="session")
def compiled():
    """Kernels in the cache on disk, so that all processes that start later load the same machine code."""
    assert float(subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True).stdout) > 0


class _Running:
    """The cluster of this process and its machine that stays; none at first."""

    def __init__(self):
        self.cluster, self.machine, self.ends = None, None, ExitStack()

    def start(self):
        """A head without CPUs, to which this process is connected."""
        ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'credalens[ray]'")
        from ray.cluster_utils import Cluster

        patch = self.ends.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": LIVELY, **SMALL}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.ends.callback(self.cluster.shutdown)
        self.ends.callback(ray.shutdown)
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level="ERROR")

    def stop(self):
        self.cluster = self.machine = None
        self.ends.close()


RUNNING = _Running()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem):
    """Stop the cluster before a test that has no use for it: idle, it takes 6 % of a core."""
    if RUNNING.cluster and "cluster" not in getattr(nextitem, "fixturenames", ()):
        RUNNING.stop()


@pytest.fixture
def cluster(compiled):
    """The cluster of this process."""
    if RUNNING.cluster is None:
        RUNNING.start()
    return RUNNING.cluster


def _add(cluster):
    node = cluster.add_node(num_cpus=1, **SMALL)
    cluster.wait_for_nodes(timeout=PATIENCE)
    _at(node, lambda: exec(WARM))()  # noqa: S102  (work given to it then begins at once)
    return node


def _at(node, work):
    """Begin some work on one machine; the call waits for its end."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(node_id=node.node_id, soft=False)
    reference = ray.remote(work).options(num_cpus=1, scheduling_strategy=here).remote()
    return lambda: ray.get(reference, timeout=PATIENCE)


@pytest.fixture
def machine(cluster):
    """A machine of one CPU that stays."""
    RUNNING.machine = RUNNING.machine or _add(cluster)
    return RUNNING.machine


@pytest.fixture
def doomed(cluster, machine, tmp_path):
    """Another one, which gets all the work until a call of this takes it away: the first one is busy as long."""
    node, begun, over = _add(cluster), tmp_path / "begun", tmp_path / "over"

    def hold() -> None:
        begun.touch()
        wait_until(over.exists)

    held = _at(machine, hold)
    wait_until(begun.exists)

    def lose() -> None:
        cluster.remove_node(node, allow_graceful=False)
        over.touch()
        held()

    yield lose
    over.touch()
    if node in cluster.worker_nodes:
        cluster.remove_node(node)
