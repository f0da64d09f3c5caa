"""How kernels are compiled, cached and loaded, in processes of their own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

INTERSECT = """
import numpy as np, sys
from credalens.kernels.bounds import intersect_rows, intersection_rows
out = np.empty((1, 2))
intersection_rows(np.array([[0.2, 0.4]]), np.array([[0.6, 0.8]]), out)
assert np.allclose(out, [[0.4, 0.6]])
"""


def run(code, environment=None):
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (environment or {}),
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_entry_points_are_cached_for_the_next_process(tmp_path):
    """Which loads them without what Numba needs to compile; helpers are not cached."""
    code = """
import numpy as np, sys
from credalens.kernels.bounds import bounds_rows, fold_rows
assert bounds_rows(np.full((1, 1, 2), 0.5), 0, 1, 1e-5, *np.empty((3, 1, 2)))
print(sum(fold_rows.stats.cache_hits.values()), 'numba.np.arraymath' in sys.modules)
"""
    assert [run(code, {"NUMBA_CACHE_DIR": str(tmp_path)}) for _ in range(2)] == ["0 True", "1 False"]
    assert {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")} == {"bounds.fold_rows"}


def test_the_first_call_compiles_few_functions_and_a_second_process_none(tmp_path):
    """Counted, since time depends on the machine; other numbers of classes have nothing to compile."""
    code = """
import numpy as np, numba.core.event as event
import credalens
from credalens.kernels.simd.compiler_passes import compiles_sooner
p = np.random.default_rng(0).dirichlet(np.ones(30), (5, 50))
few = p[..., :10] / p[..., :10].sum(axis=-1, keepdims=True)
for members in (few, p):
    with event.install_recorder("numba:compile") as recorder:
        credalens.wrap(members, threads=1)
    print(sum(one.is_start for _, one in recorder.buffer))
assert compiles_sooner()
"""
    first, second = (map(int, run(code, {"NUMBA_CACHE_DIR": str(tmp_path)}).split()) for _ in range(2))
    compiled, more = first
    assert 0 < compiled < 90  # measured: 74
    assert more == 0
    assert [*second] == [0, 0]


def test_kernels_do_not_load_linear_algebra_and_leave_it_to_others():
    code = (
        INTERSECT
        + """
assert "scipy.linalg" not in sys.modules
import numba
a = np.arange(6.0).reshape(2, 3)
print(np.array_equal(numba.njit(lambda x: np.dot(x, x.T))(a), a @ a.T), "scipy.linalg" in sys.modules)
"""
    )
    assert run(code) == "True True"


def test_without_scipy_numba_finds_out_by_itself():
    """A process in which SciPy cannot be imported gets Numba's own message, not a crash of ours."""
    code = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "scipy":
            raise ModuleNotFoundError(name)
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "scipy" else real(name, package)
sys.meta_path.insert(0, Hidden())
{INTERSECT}
from numba.np import arraymath
print(arraymath._HAVE_BLAS)
"""
    assert run(code) == "False"


@pytest.mark.parametrize("name", ["hartley", "hull"])
def test_helpers_have_no_entry_from_python(name):
    import numba

    module = importlib.import_module(f"credalens.kernels.{name}")
    kernels = {key: value for key, value in vars(module).items() if hasattr(value, "targetoptions")}
    kernels = {key: value for key, value in kernels.items() if value.py_func.__module__ == module.__name__}
    assert isinstance(next(iter(kernels.values())), numba.core.registry.CPUDispatcher)
    for key, value in kernels.items():
        assert value.targetoptions.get("no_cpython_wrapper", False) == key.startswith("_")
