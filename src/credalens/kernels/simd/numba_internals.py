"""The one door to Numba's internals: patches that make kernels start sooner and run faster, and change no number.

Each is tried and verified where it is applied. Where Numba no longer has what a patch needs, or the environment variable
``CREDALENS_PLAIN_NUMBA`` is set, kernels are compiled by plain ``numba.njit``: without a patched cache they are compiled again
in every process, because Numba's own cache would keep outdated code (see `stamped_cache`).

| patch | what it saves |
|---|---|
| ``no_reference_counts`` | a fifth of the time of a row of a hundred classes |
| ``no_wrappers`` | a tenth of the time to compile |
| ``short_pipeline`` | two fifths of the time to compile (``compiler_passes.py``) |
| ``stamped_cache`` | compiling again in every process |
| ``bare_load`` | a tenth of a second in every process that only loads kernels |
| ``deferred_blas`` | a fifth of a second in every process that compiles them |
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numba

__all__ = ["APPLIED", "HELPER_OPTIONS", "PLAIN", "compile_fast", "options", "stamped_cache"]

PLAIN = os.environ.get("CREDALENS_PLAIN_NUMBA", "0") not in ("", "0")
APPLIED: set[str] = set()  # the patches that work


def _attempt(name: str, patch: Callable[[], Any], otherwise: Any) -> Any:
    """What ``patch`` returns, or ``otherwise`` if it raises."""
    if PLAIN:
        return otherwise
    try:
        result = patch()
    except Exception:  # whatever a newer Numba raises: the patch does not work
        return otherwise
    APPLIED.add(name)
    return result


def _accepted(given: dict[str, Any], **flags: Any) -> dict[str, Any]:
    """The given compilation options, after Numba has turned them into these flags; raises if it does not."""
    from numba.core.compiler import Flags
    from numba.core.registry import cpu_target

    parsed = Flags()
    cpu_target.target_context  # noqa: B018  (registers the target, without which Numba knows no options)
    dispatcher = numba.njit(**given)(lambda: None)
    dispatcher.targetdescr.options.parse_as_flags(parsed, dispatcher.targetoptions)
    wrong = {name: getattr(parsed, name) for name, value in flags.items() if getattr(parsed, name) != value}
    if wrong:
        raise NotImplementedError(f"Numba ignores {given}: its flags are {wrong}")
    return given


def _short_pipeline() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    from credalens.kernels.simd.compiler_passes import KernelCompiler, compile_sooner

    return {"pipeline_class": KernelCompiler}, compile_sooner


def _deferred_blas() -> None:
    """Spare processes that never ask Numba for linear algebra the import of scipy.linalg.

    On its first compilation, or load from the cache, Numba imports it only to learn whether it is there. Finding SciPy
    answers that as well; Numba itself imports it later for those whose code calls ``np.dot``.
    """
    import numba.np.linalg as linalg

    if "numba.np.arraymath" in sys.modules or find_spec("scipy") is None:
        return
    original = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath").ensure_blas = original
    finally:
        linalg.ensure_blas = original


# Whoever calls a kernel holds its arrays, and no kernel makes one. Numba would count references all the same, by an operation
# that locks memory for every view of a row and for every helper that is given one.
_uncounted = _attempt("no_reference_counts", lambda: _accepted({"_nrt": False}, nrt=False), {})
_unwrapped = _attempt("no_wrappers", lambda: _accepted({"no_cfunc_wrapper": True}, no_cfunc_wrapper=True), {})
HELPER_OPTIONS: dict[str, Any] = _attempt(
    "no_wrappers", lambda: _accepted({"no_cpython_wrapper": True}, no_cpython_wrapper=True), {}
)
_pipeline, compile_fast = _attempt("short_pipeline", _short_pipeline, ({}, lambda dispatcher: dispatcher))
_COMPILATION = tuple(sorted(APPLIED))  # the patches that change machine code: code made without them is other code


def options() -> dict[str, Any]:
    """The compilation options of every kernel that only Numba's internals understand."""
    return {**_uncounted, **_unwrapped, **_pipeline}


def stamped_cache(function: Callable[..., Any], fingerprint: str, settings: dict[str, Any]) -> Any:
    """``function`` with machine code cached on disk under a fingerprint of all kernel files.

    Numba's cache looks only at the file a function stands in, so a kernel would keep an outdated copy of one it calls from
    another file. The stamp is also part of the version, which Numba compares before it unpickles an index whose classes may
    be gone, and of the names of data files, so that an index that was written just before a kill never names code of
    another version. Without a cache where that cannot be changed, or where there is no place for one.
    """

    def with_stamps() -> Any:
        compiled = numba.njit(cache=True, **settings)(function)
        cache_file = compiled._cache._cache_file
        if not (cache_file._source_stamp and cache_file._version and ".{number:d}." in cache_file._data_name_pattern):
            raise NotImplementedError("Numba's cache is not as expected")
        stamp = "-".join((fingerprint, *_COMPILATION))
        short = hashlib.sha256(stamp.encode()).hexdigest()[:12]
        cache_file._source_stamp, cache_file._version = stamp, f"{numba.__version__} {stamp}"
        cache_file._data_name_pattern = cache_file._data_name_pattern.replace(".{number:d}.", f".{short}.{{number:d}}.")
        return compiled

    compiled = _attempt("stamped_cache", with_stamps, None)
    if compiled is None:
        return numba.njit(**settings)(function)
    if "no_reference_counts" in APPLIED:
        _attempt("bare_load", lambda: _bare_load(compiled._cache), None)
    return compiled


def _bare_load(cache: Any) -> None:
    """Let ``cache`` load machine code without all that Numba prepares for compiling, which kernels that count no references
    do not need."""
    load, guarded = cache._load_overload, cache._guard_against_spurious_io_errors

    def load_overload(signature: Any, target_context: Any) -> Any:
        with guarded():
            result = load(signature, target_context)
            if result is not None:
                return result
        _attempt("deferred_blas", _deferred_blas, None)  # Numba prepares for compiling now
        return None

    cache.load_overload = load_overload
