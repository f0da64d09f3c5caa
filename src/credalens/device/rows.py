"""Rows on the GPU: which kernels run on how many rows at a time, and the rounds of the lower-entropy search."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["KINDS", "MOST_CLASSES", "Rows", "describe"]

KINDS = {"probs": 0, "logits": 1}
MOST_CLASSES = 4096  # a row must fit in the registers of one program
SCRATCH = 2**31  # bytes for the open classes of the rows in flight
ROUNDS = (6, 32)  # nodes of a row's search beside others; the few rows that need more get a program each
WIDTHS = (16, 64, 256, 1024, 4096)  # open classes of the rows that are searched together
NARROW = 32  # classes up to which one thread describes a row
NARROW_ROWS = 64  # of a program then
ALIGNED = 4  # integers from one counter to the next: Triton compiles anew for a pointer that is not a multiple of 16
LANE_CLASSES = 256  # open classes up to which a row starts on one thread


@dataclass(frozen=True)
class Rows:
    """Results (rows, classes) and (rows,) on the device, in the caller's precision."""

    lower: Tensor
    upper: Tensor
    probability: Tensor
    mean: Tensor
    total: Tensor
    aleatoric: Tensor
    epistemic: Tensor
    aleatoric_bound: Tensor


def describe(
    members: Tensor, kind: str, /, *, row_tolerance: float, unit: float, max_nodes: int, tolerance: float
) -> Rows | None:
    """Everything about contiguous members (count, rows, classes), or None if a row is not a distribution.

    ``unit`` turns bits into the caller's unit. Nothing leaves the device but the number of rows still to be refined and
    whether all rows were valid.
    """
    _, rows, classes = members.shape
    dtype = members.dtype if members.dtype == torch.float64 else torch.float32

    def new(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=members.device)

    results = Rows(*(new(rows, classes) for _ in range(4)), *(new(rows) for _ in range(4)))
    size = min(rows, max(1, SCRATCH // (16 * classes)))
    bad = torch.zeros(1, dtype=torch.int32, device=members.device)
    with _current(members.device):
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            out = Rows(*(x[part] for x in vars(results).values()))
            chunk = _Chunk(members if size == rows else members[:, part].contiguous(), bad, kind, row_tolerance)
            chunk.describe(out)
            chunk.search(max_nodes, tolerance)
            chunk.finish(out, unit)
    return None if int(bad) else results


class _Chunk:
    """Rows in flight: their open classes and entropies in bits."""

    def __init__(self, members: Tensor, bad: Tensor, kind: str, row_tolerance: float) -> None:
        self.members, self.bad, self.kind, self.row_tolerance = members, bad, kind, row_tolerance
        _, self.rows, self.classes = members.shape
        self.narrow = self.classes <= NARROW
        self.steps = (1, self.rows) if self.narrow else (self.classes, 1)
        self.core_low, self.core_high = self._new(self.rows, self.classes), self._new(self.rows, self.classes)
        self.need, self.base, self.total, self.value, self.bound = (self._new(self.rows) for _ in range(5))
        self.size = torch.empty(self.rows, dtype=torch.int32, device=members.device)

    def _new(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float64, device=self.members.device)

    def describe(self, out: Rows) -> None:
        """Bounds, point predictions, upper entropy and open classes."""
        arrays = (out.lower, out.upper, out.probability, out.mean, self.total)
        sizes = (self.rows, self.classes, len(self.members), self.row_tolerance)
        core = (self.core_low, self.core_high, self.size, self.need, self.base, self.bad)
        if self.narrow:
            from credalens.device.narrow import describe_lanes

            scales = self._new(2, len(self.members), self.rows)
            describe_lanes[(-(-self.rows // NARROW_ROWS),)](
                self.members, *arrays, *core, scales, *sizes, KIND=KINDS[self.kind], ROWS=NARROW_ROWS, num_warps=2
            )
        else:
            from credalens.device.bounds import describe_rows

            width = max(128, 1 << (self.classes - 1).bit_length())
            describe_rows[(self.rows,)](
                self.members,
                *arrays,
                *core,
                *sizes,
                KIND=KINDS[self.kind],
                ROWS=1,
                WIDTH=width,
                num_warps=max(1, width // 256),
            )

    def search(self, max_nodes: int, tolerance: float) -> None:
        """Lower entropy: rows with few open classes side by side in rounds, then a program each for what remains."""
        least = -1
        for width in _widths(self.classes):
            chosen = None
            if self.classes > WIDTHS[0]:
                chosen = ((self.size > least) & (self.size <= width)).nonzero().view(-1)
            least = width
            if width <= LANE_CLASSES:
                chosen = self._search_side_by_side(chosen, width, max_nodes, tolerance)
            if chosen is not None:
                self._search_row(chosen, width, max_nodes, tolerance)

    def _search_side_by_side(
        self, chosen: Tensor | None, width: int, max_nodes: int, tolerance: float
    ) -> Tensor | None:
        """One thread a row: the root, then rounds of more nodes for fewer rows. Returns the rows that need still more.

        A warp works as long as its slowest row, so that short rounds with like rows beat one long one. A round finds its
        rows, and their number, where the last one left them on the device, so that nothing waits between rounds.
        """
        items = self.rows if chosen is None else len(chosen)
        if not items:
            return None
        device = self.members.device
        left = [torch.empty(items, dtype=torch.int64, device=device) for _ in range(1 + len(ROUNDS))]
        numbers = torch.zeros(1 + len(ROUNDS), ALIGNED, dtype=torch.int32, device=device)
        self._close_at_root(chosen, left[0], numbers[0], width, tolerance)
        for i, nodes in enumerate(ROUNDS):
            lists = (left[i], numbers[i], left[i + 1], numbers[i + 1])
            self._search_lanes(*lists, width, min(max_nodes, nodes), tolerance)
            if max_nodes <= nodes:
                return None
        return left[-1][: int(numbers[-1, 0])]

    def _close_at_root(self, chosen: Tensor | None, left: Tensor, number: Tensor, width: int, tolerance: float) -> None:
        from credalens.device.lanes import LANES
        from credalens.device.root import close_at_root

        programs, width = self._programs(len(left)), min(width, self.classes)
        close_at_root[(programs,)](
            self.size if chosen is None else chosen,
            len(left),
            *self._open_classes(),
            self._new(programs, 2, width, LANES),
            left,
            number,
            tolerance,
            *self.steps,
            width,
            EVERY=chosen is None,
            ROWS=LANES,
            num_warps=LANES // 32,
        )

    def _search_lanes(
        self,
        chosen: Tensor,
        number: Tensor,
        left: Tensor,
        number_left: Tensor,
        width: int,
        max_nodes: int,
        tolerance: float,
    ) -> None:
        from credalens.device.lanes import LANES, search_lanes

        programs, width, height = self._programs(len(chosen)), min(width, self.classes), 3 * max_nodes + 8
        search_lanes[(programs,)](
            chosen,
            number,
            *self._open_classes(),
            self._new(programs, 5, width, LANES),
            self._new(programs, 4, height, LANES),
            left,
            number_left,
            tolerance,
            max_nodes,
            *self.steps,
            height,
            width,
            ROWS=LANES,
            num_warps=LANES // 32,
        )

    def _programs(self, items: int) -> int:
        """How many programs search rows side by side: no more than the device holds at once."""
        from credalens.device.lanes import LANES

        return min(-(-items // LANES), 32 * _processors(self.members.device))

    def _search_row(self, chosen: Tensor, width: int, max_nodes: int, tolerance: float) -> None:
        from credalens.device.search import search_rows

        if not len(chosen):
            return
        warps = max(1, width // 128)
        programs = min(len(chosen), max(1, 32 // warps) * _processors(self.members.device))
        height = min(12 * width + 256, 3 * max_nodes + 8)
        search_rows[(programs,)](
            chosen,
            len(chosen),
            *self._open_classes(),
            self._new(programs, 5, width),
            self._new(programs, height, 4),
            tolerance,
            max_nodes,
            *self.steps,
            height,
            WIDTH=width,
            num_warps=warps,
        )

    def _open_classes(self) -> tuple[Tensor, ...]:
        return self.core_low, self.core_high, self.size, self.need, self.base, self.value, self.bound

    def finish(self, out: Rows, unit: float) -> None:
        """Entropies in the caller's unit and precision."""
        from credalens.device.finish import finish_rows

        scale = torch.full((1,), unit, dtype=torch.float64, device=self.members.device)
        finish_rows[(-(-self.rows // 1024),)](
            self.total,
            self.value,
            self.bound,
            scale,
            out.total,
            out.aleatoric,
            out.epistemic,
            out.aleatoric_bound,
            self.rows,
            BLOCK=1024,
        )


def _widths(classes: int) -> list[int]:
    """The sizes of search that rows of so many classes can need."""
    return [w for w in WIDTHS if w < classes] + [min(w for w in WIDTHS if w >= classes)]


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Kernels start on the current device, which need not be that of the tensors."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _processors(device: torch.device) -> int:
    """How many multiprocessors the device has; one where kernels are interpreted."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
