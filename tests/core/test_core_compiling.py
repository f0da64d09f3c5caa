"""Answers about types are kept only while our own kernels are compiled, and are those Numba gives."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numba.core import types

from credalens.core.kernels.compiling import _answers_kept
from credalens.core.kernels.jit import kernel


def test_numba_is_as_before_after_compiling():
    original = types.BaseFunction.get_call_type
    with _answers_kept():
        assert types.BaseFunction.get_call_type is not original
    assert types.BaseFunction.get_call_type is original


def test_numba_is_as_before_after_an_error_while_compiling():
    original = types.BaseFunction.get_call_type
    with pytest.raises(ZeroDivisionError), _answers_kept():
        raise ZeroDivisionError
    assert types.BaseFunction.get_call_type is original


def test_subscripts_keep_their_types():
    """Arrays of one and two axes, integers and floats, constant and variable positions, in one kernel."""

    @kernel
    def _pick(x, table, order, k):
        inner = table[k]
        return x[k] + x[order[k]] + table[1, k] + table[k, 0] + inner[2] + (1.0 if order[k] > 1 else 0.0)

    @kernel
    def pick_both(x, table, order, out):
        for k in range(2):
            out[k] = _pick(x, table, order, k)

    x, table, order, out = np.arange(3.0), np.arange(9.0).reshape(3, 3), np.array([2, 0, 1]), np.empty(2)
    pick_both(x, table, order, out)
    expected = [
        x[k] + x[order[k]] + table[1, k] + table[k, 0] + table[k, 2] + (1.0 if order[k] > 1 else 0.0) for k in range(2)
    ]
    np.testing.assert_array_equal(out, expected)


def test_the_same_machine_code_with_and_without(tmp_path):
    """Bounds, entropies and point predictions to the last bit, compiled in two processes."""
    code = """
import sys, numpy as np
if sys.argv[1] == "without":
    import credalens.core.kernels.compiling as compiling
    compiling.REPEATED = ()
from credalens.core.kernels.bounds import bounds_rows
p = np.random.default_rng(0).dirichlet(np.ones(5), (3, 7))
low, high, mean = np.empty((3, 7, 5))
assert bounds_rows(p, 0, 7, 1e-5, low, high, mean)
print(low.tobytes().hex(), high.tobytes().hex(), mean.tobytes().hex())
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, word],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / word)},
        ).stdout
        for word in ("with", "without")
    ]
    assert outputs[0] == outputs[1]
