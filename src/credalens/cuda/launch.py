"""Launching compiled Triton kernels without Triton's look-up.

Triton inspects every argument of every call to choose a compiled kernel, which takes longer than a kernel needs for a few
hundred rows. Here the choice depends on dtypes, constants and alignment only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any, final

import torch

from credalens.cuda.buffers import Array, ScratchArray

KEPT = "cuda"  # the type of device whose compiled kernels are kept


@final
class Kernel:
    """A kernel and what Triton has compiled it to. Its parameters are arrays, numbers and constants, in this order.

    Where this Triton works otherwise, or an array is not aligned, Triton launches the kernel; the results are the same.
    """

    def __init__(self, jit: Any, /) -> None:
        self.jit = jit
        self.compiled: dict[tuple[Any, ...], Any] = {}
        self.proven = False

    def __call__(
        self,
        compiled_for: tuple[torch.device, int],
        programs: int,
        arrays: Sequence[Array],
        numbers: Sequence[float],
        constants: Mapping[str, Any],
        /,
        **options: int,
    ) -> None:
        """Launch ``programs`` programs. ``compiled_for`` is the device and the number of classes; integers are below 2^31.

        Triton compiles anew for another device, number of classes, dtype, constant or option, and for nothing else.
        """
        addresses = [x.data_ptr() for x in arrays]
        key = (compiled_for, *[x.dtype for x in arrays], *constants.values(), *options.values())
        kept = self.compiled.get(key) if _aligned(addresses) else None
        if kept is None or not self._launched(kept, programs, (*addresses, *numbers, *constants.values())):
            tensors = [x.tensor() if isinstance(x, ScratchArray) else x for x in arrays]
            made = self.jit[(programs,)](*tensors, *numbers, **constants, **options)
            if _kept(compiled_for[0]) and _aligned(addresses) and key not in self.compiled:
                self.compiled[key] = made if _takes_all(made, self.jit) else None

    def _launched(self, kept: Any, programs: int, arguments: tuple[Any, ...]) -> bool:
        try:
            kept[(programs, 1, 1)](*arguments)
        except (AttributeError, TypeError):  # before anything was launched: this Triton wants something else
            if self.proven:  # no: it has launched so before, and this error is a hook's, with the kernel on its way
                raise
            self.compiled = dict.fromkeys(self.compiled)
            return False
        self.proven = True
        return True


def _kept(device: torch.device) -> bool:
    """Whether compiled kernels are kept for a device; AMD's, of the same type, differ by the size of an allocation too."""
    return device.type == KEPT and torch.version.hip is None


def _aligned(addresses: list[int]) -> bool:
    """Whether all are multiples of 16 bytes: Triton compiles anew where one is not."""
    bits = 0
    for address in addresses:
        bits |= address
    return bits % 16 == 0


def _takes_all(made: Any, jit: Any) -> bool:
    """Whether a compiled kernel can be launched, and with every parameter of its source, constants among them."""
    return hasattr(made, "__getitem__") and [*getattr(getattr(made, "src", None), "signature", ())] == jit.arg_names


@cache
def kernel(file: str, name: str, /) -> Kernel:
    """A kernel of this package, imported when first needed, since Triton need not be installed."""
    return Kernel(getattr(import_module(f"credalens.cuda.{file}"), name))


@contextmanager
def side_streams(device: torch.device, number: int, /) -> Iterator[list[AbstractContextManager[Any]]]:
    """``number`` streams that begin after the work of the current one, which then waits for them."""
    if device.type != "cuda" or number < 2:
        yield [nullcontext()] * number
        return
    now = torch.cuda.current_stream(device)
    streams = [torch.cuda.Stream(device) for _ in range(number)]  # type: ignore[no-untyped-call]
    for stream in streams:
        stream.wait_stream(now)
    try:
        yield [torch.cuda.stream(stream) for stream in streams]
    finally:
        for stream in streams:
            now.wait_stream(stream)


def on_device(device: torch.device, /) -> AbstractContextManager[Any]:
    """Make ``device`` the current one, on which kernels start."""
    away = device.type == "cuda" and torch.cuda.current_device() != device.index
    return torch.cuda.device(device) if away else nullcontext()


@cache
def processors(device: torch.device, /) -> int:
    """How many multiprocessors the device has; one where kernels are interpreted."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
