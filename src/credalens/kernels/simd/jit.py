"""How every kernel is compiled: without the GIL, sums free to be reordered, no array owned, and cached (``cache.py``).

Three options of Numba are less usual. The first call of `wrap`, with nothing cached, takes 8.7 s of one core with them:

- ``_nrt=False``: no array is owned. Whoever calls a kernel holds its arrays, and no kernel makes one; Numba would count
  references all the same, by an operation that locks memory for every view of a row and for every helper that is given one:
  0.54 instead of 0.25 us a row at ten classes, 1.29 instead of 0.93 at a hundred, and 2.4 s more to compile.
- ``no_cpython_wrapper`` for helpers: no entry from Python that nobody uses, which would take 2.0 s more to compile.
- ``no_cfunc_wrapper``: none from C, which would take 0.8 s more.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from credalens.kernels.simd.cache import KernelCache

# What counts begin with, and no class: for plain numbers Numba would compile copies of their own.
NONE, NOBODY = np.int64(0), np.int64(-1)

# Reordering sums lets LLVM use vector units. NaN keeps its meaning: validation compares against it.
FAST = ("reassoc", "contract", "nsz")
OPTIONS: dict[str, Any] = {
    "nogil": True, "fastmath": set(FAST), "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True,
}  # fmt: skip


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on its first call and cache the machine code.

    A function with a leading underscore serves other kernels only: it becomes part of them, and takes no entry from
    Python and no place in the cache.
    """
    if function.__name__.startswith("_"):
        return numba.njit(no_cpython_wrapper=True, **OPTIONS)(function)
    compiled = numba.njit(**OPTIONS)(function)
    compiled._cache = KernelCache(function)  # as ``cache=True`` does with the cache of Numba
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``function`` a part of the kernels of several files that call it, whatever its size. Not for Python to call.

    A call that is left in a loop keeps the loop from being vectorised.
    """
    return numba.njit(forceinline=True, no_cpython_wrapper=True, **OPTIONS)(function)
