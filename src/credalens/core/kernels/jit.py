"""How every kernel is compiled: cached on disk, without the GIL, sums free to be reordered."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

__all__ = ["bits_to_float", "float_to_bits", "kernel"]

# Reordering sums lets LLVM use vector units. NaN keeps its meaning: validation compares against it.
FAST = {"reassoc", "contract", "nsz"}


def _fingerprint() -> str:
    """One hash over all kernel sources and the compiler's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


FINGERPRINT = _fingerprint()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` on its first call and cache the machine code.

    Numba's cache looks only at the file a function stands in, so a kernel would keep an outdated copy of one it
    calls from another file. The fingerprint makes the cache follow all kernel files together.
    """
    compiled = numba.njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")(function)
    compiled._cache._cache_file._source_stamp = FINGERPRINT
    return compiled


@intrinsic
def float_to_bits(typing_context, x):  # type: ignore[no-untyped-def]
    """The 64 bits of a float64 as an int64."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def bits_to_float(typing_context, x):  # type: ignore[no-untyped-def]
    """The float64 whose 64 bits are the given int64."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen
