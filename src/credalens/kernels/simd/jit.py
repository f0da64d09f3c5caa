"""How every kernel is compiled: cached on disk, without the GIL, sums free to be reordered, no array owned."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
import numba.np.linalg
import numpy as np
from numba.core.options import DefaultOptions

__all__ = ["NOBODY", "NONE", "inlined", "kernel"]

# What counts begin with, and no class: for plain numbers Numba would compile copies of their own.
NONE, NOBODY = np.int64(0), np.int64(-1)

# Reordering sums lets LLVM use vector units. NaN keeps its meaning: validation compares against it.
FAST = {"reassoc", "contract", "nsz"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FAST, "error_model": "numpy", "no_cfunc_wrapper": True}

# Whoever calls a kernel holds its arrays, and no kernel makes one: so nobody need count who holds them. Numba would, by an
# operation that locks memory for every view of a row and for every helper that is given one: a fifth of the time of a row
# of a hundred classes. Where Numba should no longer know the option, it counts.
if hasattr(DefaultOptions, "_nrt"):
    OPTIONS["_nrt"] = False


def _shorter_way() -> Callable[[Any], Any]:
    """How entry points compile sooner; as they are where Numba no longer has the parts that this is made of."""
    try:
        from credalens.kernels.simd.compiling import KernelCompiler, compile_sooner
    except ImportError:
        return lambda dispatcher: dispatcher
    OPTIONS["pipeline_class"] = KernelCompiler
    return compile_sooner


_sooner = _shorter_way()


def _fingerprint() -> str:
    """One hash over all kernel sources and the compiler's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


FINGERPRINT = _fingerprint()


def _defer_blas() -> None:
    """Spare processes that never ask Numba for linear algebra the import of scipy.linalg, a fifth of a second.

    On its first compilation, or load from the cache, Numba imports it only to learn whether it is there. Finding SciPy
    answers that as well; Numba itself imports it later for those whose code calls ``np.dot``.
    """
    linalg = numba.np.linalg
    if "numba.np.arraymath" in sys.modules or not hasattr(linalg, "ensure_blas") or find_spec("scipy") is None:
        return
    original = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath").ensure_blas = original
    finally:
        linalg.ensure_blas = original


_defer_blas()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call and cache the machine code.

    Numba's cache looks only at the file a function stands in, so a kernel would keep an outdated copy of one it
    calls from another file. The fingerprint makes the cache follow all kernel files together.

    A function with a leading underscore serves other kernels only: it becomes part of them, and takes no entry from
    Python and no place in the cache, which saves a tenth of the time to compile.
    """
    if function.__name__.startswith("_"):
        return numba.njit(no_cpython_wrapper=True, **OPTIONS)(function)
    compiled = numba.njit(cache=True, **OPTIONS)(function)
    compiled._cache._cache_file._source_stamp = FINGERPRINT
    return _sooner(compiled)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``function`` a part of the kernels of several files that call it, whatever its size. Not for Python to call.

    A call that is left in a loop keeps the loop from being vectorised.
    """
    return numba.njit(no_cpython_wrapper=True, forceinline=True, **OPTIONS)(function)
