"""How kernels are compiled: once for all processes, without entries that nobody uses, and without counting references."""

from __future__ import annotations

import importlib
import sys

import numba
import numpy as np
import pytest

from credalens.kernels.simd.jit import OPTIONS, kernel
from tests.kernels.test_cache import run


@pytest.mark.processes
def test_neither_a_second_process_nor_another_number_of_classes_compiles_anything():
    """In the folder that all processes share, so that nothing is compiled for this test alone."""
    code = """
import numpy as np, numba.core.event as event
import credalens
p = np.random.default_rng(0).dirichlet(np.ones(30), (5, 50))
few = p[..., :10] / p[..., :10].sum(axis=-1, keepdims=True)
for members in (few, p):
    with event.install_recorder("numba:compile") as recorder:
        credalens.wrap(members, threads=1)
    print(sum(one.is_start for _, one in recorder.buffer))
"""
    first, second = ([*map(int, run(code).split())] for _ in range(2))
    assert first[1] == 0
    assert second == [0, 0]


@pytest.mark.parametrize("name", ["hartley", "hull"])
def test_helpers_have_no_entry_from_python(name):
    module = importlib.import_module(f"credalens.kernels.{name}")
    kernels = {key: value for key, value in vars(module).items() if hasattr(value, "targetoptions")}
    kernels = {key: value for key, value in kernels.items() if value.py_func.__module__ == module.__name__}
    assert isinstance(next(iter(kernels.values())), numba.core.registry.CPUDispatcher)
    for key, value in kernels.items():
        assert value.targetoptions.get("no_cpython_wrapper", False) == key.startswith("_")


def test_nobody_counts_who_holds_an_array():
    """Views of rows, handed to a helper and back, in code without any call of Numba's that counts them."""

    @kernel
    def _row(table, k):
        return table[k], table[k, 1:]

    @numba.njit(**OPTIONS)
    def add_rows(table, out):
        for k in range(len(table)):
            whole, rest = _row(table, k)
            out[k] = whole.sum() + rest[0]

    table, out = np.arange(6.0).reshape(2, 3), np.empty(2)
    holders = sys.getrefcount(table)
    add_rows(table, out)
    np.testing.assert_array_equal(out, [4.0, 16.0])
    assert sys.getrefcount(table) == holders
    (code,) = add_rows.inspect_llvm().values()
    assert "NRT_" not in code


def test_a_kernel_that_makes_an_array_is_refused():
    @kernel
    def make_an_array(size):
        return np.empty(size)

    with pytest.raises(numba.core.errors.NumbaError, match="array passed into"):
        make_an_array(3)
