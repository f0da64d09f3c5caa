"""The shorter way to compile gives the numbers of Numba's own way, leaves nothing changed, and can be done without."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import types

from credalens import kernels
from credalens.kernels.simd.compiler_passes import (
    _cached_call_types,
    _HelperLibrary,
    _no_collection,
    compile_sooner,
    compiles_sooner,
)
from credalens.kernels.simd.jit import OPTIONS, kernel

ROOM = Path(kernels.__path__[0])


def test_numba_is_as_before_after_compiling():
    original = types.BaseFunction.get_call_type
    with _cached_call_types():
        assert types.BaseFunction.get_call_type is not original
    assert types.BaseFunction.get_call_type is original


def test_numba_is_as_before_after_an_error_while_compiling():
    original = types.BaseFunction.get_call_type
    with pytest.raises(ZeroDivisionError), _cached_call_types():
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


POINT = """
{change}
import numpy as np
from credalens.kernels.bounds import intersection_rows
low, high = np.sort(np.random.default_rng(0).dirichlet(np.ones(5), (2, 7)), axis=0)
point = np.empty((7, 5))
intersection_rows(low, high, point)
numbers = point.tobytes().hex()
"""

GONE = """
def gone(*arguments):
    raise AttributeError("Numba has changed")
"""


SOONER = "import credalens.kernels.simd.compiler_passes as c; print(c.compiles_sooner(), numbers)"


def compiled_sooner():
    """The point predictions to the last bit, by the kernels of this process."""
    assert compiles_sooner()
    names = {}
    exec(POINT.format(change=""), names)  # noqa: S102 - ours
    return names["numbers"]


def compiled_afresh(change, cache, report=SOONER):
    """(whether the shorter way worked, point predictions to the last bit) from a process that changes something first."""
    result = subprocess.run(
        [sys.executable, "-c", POINT.format(change=change) + report],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
    )
    assert result.returncode == 0, result.stderr
    shorter, numbers = result.stdout.split()
    return shorter == "True", numbers


INSIDES = "import credalens.kernels.simd.compiler_passes as compiling\n"


@pytest.mark.parametrize(
    "insides",
    [
        "compiling._FAILED.append(None)",
        GONE + "compiling._HelperLibrary.finalize = gone",
        GONE + "compiling._LowerHelper.run_pass = gone",
        "compiling.types = None",
    ],
    ids=["failed", "library", "lowering", "types"],
)
def test_the_same_numbers_numbas_own_way(insides, tmp_path):
    """Where Numba's insides are not what we take them for, kernels are compiled as anyone's."""
    assert compiled_afresh(INSIDES + insides, tmp_path) == (False, compiled_sooner())


def test_parts_that_numba_no_longer_has_are_not_needed(tmp_path):
    lowering = "import numba.core.compiler, numba.core.typed_passes\ndel numba.core.typed_passes.NativeLowering"
    assert compiled_afresh(lowering, tmp_path, "print(False, numbers)") == (False, compiled_sooner())


def test_an_error_in_a_helper_reaches_the_caller():
    @kernel
    def _refuse(x):
        if x > 1.0:
            raise ValueError("too much")
        return x

    @numba.njit(**OPTIONS)
    def refuse_some(x):
        return _refuse(x)

    assert refuse_some(0.5) == 0.5
    with pytest.raises(ValueError, match="too much"):
        refuse_some(2.0)


def test_a_kernel_that_cannot_be_compiled_does_not_change_the_way_of_others():
    @numba.njit(**OPTIONS)
    def add(x):
        return x + "a"

    with pytest.raises(numba.TypingError):
        compile_sooner(add)(1.0)
    assert compiles_sooner()


def test_the_garbage_collector_works_again_after_compiling():
    with _no_collection():
        assert not gc.isenabled()
        with _no_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_helpers_have_no_machine_code():
    @kernel
    def _double(x):
        return 2.0 * x

    @numba.njit(**OPTIONS)
    def quadruple(x):
        return 2.0 * _double(x)

    assert quadruple(1.5) == 6.0
    (helper,) = _double.overloads.values()
    assert isinstance(helper.library, _HelperLibrary)
    assert "fmul" in helper.library.get_llvm_str()


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
    assert compiles_sooner()


@pytest.mark.parametrize("name", sorted(str(p.relative_to(ROOM)) for p in ROOM.rglob("*.py")))
def test_kernels_use_nothing_that_is_left_out(name):
    """No closure, no `with`, no comprehension: their passes are not there."""
    tree = ast.parse((ROOM / name).read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            isinstance(mark, ast.Name) and mark.id in {"kernel", "inlined"} for mark in function.decorator_list
        ):
            parts = {type(part) for part in ast.walk(function)}
            assert not parts & {ast.With, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.Try}
