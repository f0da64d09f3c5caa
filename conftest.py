"""Fixtures of both packages. GPU kernels are collected only where Triton is installed; CUDA builds of PyTorch bring it."""

import gc
import os
import sys
from collections import defaultdict
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pytest

from credalens.checks.options import TELEMETRY
from tests.platforms import reason_to_skip

# Two test processes share the cores: with more threads each, small networks mostly wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_worker_niceness", "0")  # else Ray's workers wait until no other test has work for the cores
os.environ.update(TELEMETRY.values())  # tests import these packages directly, too

gc.disable()  # while modules are imported, whose objects stay: a quarter of the time to collect the tests

pytest_plugins = ["tests.engines.cluster"]  # a Ray cluster, for whoever asks for it

CUDA = Path(__file__).parent / "src" / "credalens" / "cuda"

collect_ignore = (
    [] if find_spec("triton") else [path for path in CUDA.rglob("*.py") if "import triton" in path.read_text("utf-8")]
)

LONG = (
    "test_ray_serve", "test_executor", "test_gpu_members", "test_private", "test_cli_demo", "test_jit", "test_repeated",
    "test_cache", "test_interrupted", "test_stopped", "test_score_file_stopped", "test_processes",
    "test_distributed",
)  # fmt: skip


def pytest_configure(config):
    """Name the marker of what `make test-fast` leaves out."""
    config.addinivalue_line("markers", "processes: starts other processes")


def pytest_collection_finish():
    """From here on the garbage collector works, and leaves alone what was imported."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    """At the end of the process everything is looked at again: JAX names objects that nobody takes away."""
    gc.unfreeze()


def pytest_collection_modifyitems(items):
    """Each process begins with what takes long, and has short tests left at the end, when no one shall wait for another.

    One begins with the tests that share a Ray, the next with those that share a smoke run. Processes get equal slices of
    the list in turn; one that has nothing left takes from the end of another's slice.
    """
    for item in items:
        if reason := reason_to_skip(item.nodeid):
            item.add_marker(pytest.mark.skip(f"not on {sys.platform}: {reason}"))
    groups = defaultdict(list)
    for item in items:
        groups[_group(item)].append(item)
    groups["long"].sort(key=lambda item: LONG.index(item.path.stem))
    items[:] = _slices(groups, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _group(item):
    shared = [name for name in ("cluster", "smoke_run") if name in getattr(item, "fixturenames", ())]
    return shared[0] if shared else "long" if item.path.stem in LONG else "short"


def _slices(groups, processes):
    starts = [[] for _ in range(processes)]
    for number, name in enumerate(("cluster", "smoke_run", "long")):
        starts[number % processes] += groups[name]
    short, left = iter(groups["short"]), sum(map(len, groups.values()))
    for number, start in enumerate(starts):
        size = max(len(start), left // (processes - number))
        yield from start
        yield from islice(short, size - len(start))
        left -= size
