"""Fixtures of both packages. GPU kernels are collected only where Triton is installed; CUDA builds of PyTorch bring it."""

import gc
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.platforms import reason_to_skip

# Two test processes share the cores: with more threads each, small networks mostly wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_worker_niceness", "0")  # else Ray's workers wait until no other test has work for the cores

gc.disable()  # while modules are imported, whose objects stay: a quarter of the time to collect the tests

pytest_plugins = ["tests.engines.cluster"]  # a Ray cluster, for whoever asks for it

CUDA = Path(__file__).parent / "src" / "credalens" / "cuda"

collect_ignore = (
    [] if find_spec("triton") else [path for path in CUDA.glob("*.py") if "import triton" in path.read_text("utf-8")]
)

COSTLY = ("smoke_run", "cluster")  # fixtures
LONG = (
    "test_ray_serve", "test_executor", "test_gpu_members", "test_private", "test_cli_demo", "test_jit", "test_repeated",
    "test_numba_internals", "test_interrupted", "test_stopped", "test_score_file_resume", "test_processes",
    "test_compiler_passes", "test_distributed",
)  # fmt: skip


def pytest_collection_finish():
    """From here on the garbage collector works, and leaves alone what was imported."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    """At the end of the process everything is looked at again: JAX names objects that nobody takes away."""
    gc.unfreeze()


def pytest_collection_modifyitems(items):
    """Tests that share something costly come first: one process makes it once, and the others take what follows.

    Long ones are next, so that short ones are left at the end, when no process shall wait for another.
    """
    for item in items:
        if reason := reason_to_skip(item.nodeid):
            item.add_marker(pytest.mark.skip(f"not on {sys.platform}: {reason}"))
    items.sort(key=_place)


def _place(item):
    costly = [name not in getattr(item, "fixturenames", ()) for name in COSTLY]
    return *costly, LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG)
