"""Member predictions that stay on the GPU, and whether this machine can work with them there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credalens.arrays import take_inputs
from credalens.checks.arrays import row_tolerance
from credalens.core.batches import for_each_chunk
from credalens.core.decomposition import CredalArrays, Decomposition
from credalens.core.members import MemberArray, read_logits, read_members
from credalens.core.options import Options
from credalens.core.recalibration import Recalibration, divided
from credalens.cuda.decomposition import MOST_CLASSES, decompose
from credalens.cuda.self_check import agrees_with_cpu

FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
NODES = 2000  # of the search for a row on the device: milliseconds of one warp, ten times what realistic rows need

CHUNK = 2**24  # values that the classical decomposition widens to float64 at a time


@dataclass(frozen=True)
class GpuMembers:
    """Member predictions on the device as (members, rows, classes), and whether they are "probs" or "logits"."""

    tensor: Tensor
    batch: tuple[int, ...]
    kind: str

    def decompose(self, options: Options, /) -> CredalArrays | None:
        """All results in the caller's shape, unit and precision, or None if a row is not a distribution."""
        results = decompose(
            self.tensor,
            self.kind,
            row_tolerance=row_tolerance(str(self.tensor.dtype).removeprefix("torch.")),
            unit=options.unit,
            max_nodes=min(options.max_nodes, NODES),
            tolerance=options.tolerance,
            refine=partial(self._refined, replace(options, base=2.0, threads=None)),
        )
        if results is None or len(self.batch) == 1:
            return results
        return results.map(lambda x: x.view(self.batch + x.shape[1:]))

    def recalibrated(self, recalibration: Recalibration, /) -> GpuMembers:
        """The same members, divided by temperatures on the device; rows that are no distributions stay as they are."""
        recalibration.check(len(self.tensor), self.tensor.shape[-1])
        temperatures = self.tensor.new_tensor(recalibration.temperatures, dtype=torch.float64)[:, None, None]
        return replace(self, tensor=divided(self.tensor, temperatures, self.kind))

    def _refined(self, in_bits: Options, rows: Tensor, /) -> Tensor:
        """Lower entropies and bounds of rows that the device leaves open, by the CPU path."""
        members = GpuMembers(self.tensor[:, rows], (len(rows),), self.kind).to_cpu()
        classes = self.tensor.shape[-1]
        results = Decomposition(len(rows), classes, np.dtype(np.float64), in_bits)
        for_each_chunk(partial(results.solve_members, members), len(rows), classes)
        results.warn_if_open(stacklevel=9)
        return torch.from_numpy(np.stack([results.arrays.aleatoric, results.arrays.aleatoric_bound]))

    def entropies(self, *, threads: int | None = None) -> tuple[Tensor, Tensor]:
        """The entropy of the mean and the mean entropy of the members in bits, on the device."""
        total, aleatoric = self.by_rows(lambda p: torch.stack([_entropy(p.mean(0)), _entropy(p).mean(0)]))
        return total, aleatoric

    def by_rows(self, compute: Callable[[Tensor], Tensor], /, *, threads: int | None = None) -> Tensor:
        """``compute`` (..., rows) of the probabilities in float64, by chunks of rows."""
        count, rows, classes = self.tensor.shape
        size, parts = max(1, CHUNK // (count * classes)), []
        for start in range(0, rows, size):
            x = self.tensor[:, start : start + size].double()
            parts.append(compute(torch.softmax(x, -1) if self.kind == "logits" else x / x.sum(-1, keepdim=True)))
        return torch.cat(parts, -1)

    def restore(self, array: Tensor, /) -> Tensor:
        """``array`` (rows, ...) in the caller's batch shape and precision, float32 for anything narrower."""
        return array.to(torch.promote_types(self.tensor.dtype, torch.float32)).view(self.batch + array.shape[1:])

    def take(self, key: Any, /) -> GpuMembers:
        """The members of some inputs, chosen by an index of the batch."""
        shaped = take_inputs(self.tensor.view(len(self.tensor), *self.batch, self.tensor.shape[-1]), key)
        members, *batch, classes = shaped.shape
        return GpuMembers(shaped.reshape(members, -1, classes).contiguous(), tuple(batch), self.kind)

    def to_cpu(self) -> MemberArray:
        """The same members for the quantities that are computed on the CPU."""
        x = self.tensor.view(len(self.tensor), *self.batch, self.tensor.shape[-1])
        return (read_logits(x) if self.kind == "logits" else read_members(x)).as_accepted()


def _entropy(p: Tensor) -> Tensor:
    return torch.special.entr(p).sum(-1) / math.log(2)


def as_gpu_members(x: Any, kind: str, /, *, member_axis: int) -> GpuMembers | None:
    """``x`` as members on its device, or None where the CPU path has to compute or to raise an error."""
    is_usual = x.dtype in FLOATS and x.ndim >= 2 and isinstance(member_axis, int) and -x.ndim <= member_axis < x.ndim
    if not is_usual or member_axis % x.ndim == x.ndim - 1 or not 2 <= x.shape[-1] <= MOST_CLASSES or not x.numel():
        return None
    if not agrees_with_cpu(x.device, x.dtype, kind, x.shape[-1]):
        return None
    x = x.detach() if x.requires_grad else x
    x = x.movedim(member_axis, 0) if member_axis else x
    count, *batch, classes = x.shape
    x = x if len(batch) == 1 else x.reshape(count, -1, classes)
    return GpuMembers(x.contiguous(), tuple(batch), kind)
