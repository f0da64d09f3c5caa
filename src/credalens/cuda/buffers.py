"""Memory on the device: results that share an allocation, and scratch memory that is cut without making tensors."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

SHARED = 2**22  # bytes of a result up to which four share an allocation: who keeps one keeps at most 12 MiB more
WORD = 4  # bytes of what scratch memory is counted in
WORDS = {torch.int32: 1, torch.float32: 1, torch.float64: 2}
APART = 64  # words from which arrays begin: Triton reads by 16 bytes where it may


@final
class ScratchArray:
    """An array in scratch memory: all that a kernel asks a tensor for, without the time to make one."""

    __slots__ = ("address", "buffer", "dtype", "length", "start")

    def __init__(self, buffer: Tensor, base: int, start: int, dtype: torch.dtype, length: int, /) -> None:
        self.buffer, self.address, self.start, self.dtype, self.length = (
            buffer,
            base + WORD * start,
            start,
            dtype,
            length,
        )

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
