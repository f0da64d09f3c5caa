"""Memory on the device, cut without making tensors, and launching compiled Triton kernels without Triton's look-up.

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
from torch import Tensor

SHARED = 2**22  # bytes of a result up to which four share an allocation: who keeps one keeps at most 12 MiB more
KEPT = "cuda"  # the type of device whose compiled kernels are kept
WORD = 4  # bytes of what scratch memory is counted in
WORDS = {torch.int32: 1, torch.float32: 1, torch.float64: 2}
APART = 64  # words from which arrays begin: Triton reads by 16 bytes where it may


@final
class ScratchArray:
    """An array in scratch memory: all that a kernel asks a tensor for, without the time to make one."""

    __slots__ = ("address", "buffer", "dtype", "length", "start")

    def __init__(self, buffer: Tensor, base: int, start: int, dtype: torch.dtype, length: int, /) -> None:
        self.buffer, self.address = buffer, base + WORD * start
        self.start, self.dtype, self.length = start, dtype, length

    def data_ptr(self) -> int:
        """The address, as tensors call it."""
        return self.address

    def tensor(self) -> Tensor:
        """The values, one after the other."""
        return self.buffer[self.start : self.start + self.length * WORDS[self.dtype]].view(self.dtype)


Array = Tensor | ScratchArray
"""What a kernel reads or writes."""


def scratch_arrays(device: torch.device, /, *arrays: tuple[torch.dtype, int]) -> list[ScratchArray]:
    """Arrays of the given dtypes and lengths, in one allocation."""
    starts, end = [], 0
    for dtype, length in arrays:
        starts.append(end)
        end += -(-WORDS[dtype] * length // APART) * APART
    buffer = torch.empty(end, dtype=torch.int32, device=device)
    base = buffer.data_ptr()
    return [ScratchArray(buffer, base, start, *array) for start, array in zip(starts, arrays, strict=True)]


def result_arrays(members: Tensor, /, *classes: int) -> tuple[Tensor, ...]:
    """Four result arrays (rows, *classes) of members (count, rows, classes), each at a multiple of 16 bytes."""
    rows = members.shape[1]
    dtype = members.dtype if members.dtype == torch.float64 else torch.float32
    size = rows * (classes[0] if classes else 1) * dtype.itemsize
    if size > SHARED:
        return tuple(torch.empty((rows, *classes), dtype=dtype, device=members.device) for _ in range(4))
    buffer = torch.empty((4, -(-rows // 4) * 4, *classes), dtype=dtype, device=members.device)
    parts = (buffer if rows % 4 == 0 else buffer[:, :rows]).unbind()
    return tuple(x.data for x in parts)  # not as views: what is done to one in place must not concern the others


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
        self, compiled_for: tuple[torch.device, int], programs: int, arrays: Sequence[Array], numbers: Sequence[float],
        constants: Mapping[str, Any], /, **options: int,
    ) -> None:  # fmt: skip
        """Launch ``programs`` programs. ``compiled_for`` is the device and the number of classes; integers are below 2^31.

        Triton compiles anew for another device, number of classes, dtype, constant or option, and for nothing else.
        """
        addresses, bits = [x.data_ptr() for x in arrays], 0
        for address in addresses:
            bits |= address
        aligned = bits % 16 == 0  # Triton compiles anew where one address is not a multiple of 16 bytes
        key = (compiled_for, *[x.dtype for x in arrays], *constants.values(), *options.values())
        kept = self.compiled.get(key) if aligned else None
        if kept is None or not self._launched(kept, programs, (*addresses, *numbers, *constants.values())):
            tensors = [x.tensor() if isinstance(x, ScratchArray) else x for x in arrays]
            made = self.jit[(programs,)](*tensors, *numbers, **constants, **options)
            # Not AMD's, whose devices are of the same type: they differ by the size of an allocation too.
            if compiled_for[0].type == KEPT and torch.version.hip is None and aligned and key not in self.compiled:
                takes = [*getattr(getattr(made, "src", None), "signature", ())]  # constants must be among them
                self.compiled[key] = made if hasattr(made, "__getitem__") and takes == self.jit.arg_names else None

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
