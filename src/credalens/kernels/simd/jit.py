"""How every kernel is compiled: cached on disk, without the GIL, sums free to be reordered, no array owned."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from credalens.kernels.simd.numba_internals import HELPER_OPTIONS, compile_fast, options, stamped_cache

__all__ = ["FINGERPRINT", "NOBODY", "NONE", "OPTIONS", "inlined", "kernel"]

# What counts begin with, and no class: for plain numbers Numba would compile copies of their own.
NONE, NOBODY = np.int64(0), np.int64(-1)

# Reordering sums lets LLVM use vector units. NaN keeps its meaning: validation compares against it.
FAST = {"reassoc", "contract", "nsz"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FAST, "error_model": "numpy", **options()}


def _fingerprint() -> str:
    """One hash over the names and contents of all kernel files and the compiler's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


FINGERPRINT = _fingerprint()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call and cache the machine code.

    A function with a leading underscore serves other kernels only: it becomes part of them, and takes no entry from
    Python and no place in the cache.
    """
    if function.__name__.startswith("_"):
        return numba.njit(**HELPER_OPTIONS, **OPTIONS)(function)
    return compile_fast(stamped_cache(function, FINGERPRINT, OPTIONS))


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``function`` a part of the kernels of several files that call it, whatever its size. Not for Python to call.

    A call that is left in a loop keeps the loop from being vectorised.
    """
    return numba.njit(forceinline=True, **HELPER_OPTIONS, **OPTIONS)(function)
