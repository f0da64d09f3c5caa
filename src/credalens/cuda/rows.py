"""Rows on the GPU: which kernels run on how many rows at a time, and how the lower-entropy search goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from credalens.cuda import layout
from credalens.cuda.launch import beside, current, kernel, processors
from credalens.cuda.memory import Array, Place, results, scratch

__all__ = ["COUNTERS", "KINDS", "Chunk", "Rows", "describe"]

KINDS = {"probs": 0, "logits": 1}
SCRATCH = 2**31  # bytes for the open classes of the rows in flight
COUNTERS, OPEN, INVALID = 32, 1, 2  # as in nodes.py; the first counter is a mark

Refine = Callable[[Tensor], Tensor]
"""From numbers of rows to their lower entropies and certified bounds in bits, (2, rows)."""


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
    members: Tensor,
    kind: str,
    /,
    *,
    row_tolerance: float,
    unit: float,
    max_nodes: int,
    tolerance: float,
    refine: Refine | None = None,
) -> Rows | None:
    """Everything about contiguous members (count, rows, classes), or None if a row is not a distribution.

    ``unit`` turns bits into the caller's unit. ``refine`` is asked for the rows that ``max_nodes`` nodes leave open. Nothing
    else leaves the device but whether all rows were valid and whether one is open: one wait, after the last kernel. The
    first kernel starts as soon as it can; what the later ones need is made ready while it runs.
    """
    _, rows, classes = members.shape
    tolerance = float(tolerance)  # Triton compiles anew for an integer
    size = min(rows, max(1, SCRATCH // (16 * classes)))
    with current(members.device):
        bounds, entropies = results(members, classes), None
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            chunk = Chunk(members if size == rows else members[:, part].contiguous(), kind, row_tolerance)
            chunk.describe(bounds if size == rows else [x[part] for x in bounds])
            entropies = entropies or results(members)
            out = entropies if size == rows else [x[part] for x in entropies]
            chunk.prepare(max_nodes)
            chunk.close(tolerance)
            chunk.search(tolerance)
            chunk.finish(out, unit, tolerance)
            mark = chunk.mark()
            if mark == INVALID:
                return None
            if mark == OPEN and refine is not None:
                chunk.refine(refine, start, tolerance)
                chunk.finish(out, unit, tolerance)
    return Rows(*bounds, *(entropies or ()))


class Chunk:
    """Rows in flight: their open classes and entropies in bits."""

    def __init__(self, members: Tensor, kind: str, row_tolerance: float, /) -> None:
        self.members, self.kind, self.row_tolerance = members, kind, row_tolerance
        self.count, self.rows, self.classes = members.shape
        self.device = members.device
        self.at = (self.device, self.classes)
        self.narrow = self.classes <= layout.NARROW
        self.steps = (1, self.rows) if self.narrow else (self.classes, 1)
        self.single = not self.narrow and kind == "probs" and members.dtype != torch.float64
        self.searches = layout.searches(self.classes)

    def describe(self, out: Sequence[Tensor], /) -> None:
        """Bounds, point predictions, upper entropy and open classes; ``out`` are the four (rows, classes)."""
        rows, double = (torch.float64, self.rows), torch.float64
        core = (torch.float32 if self.single else double, self.rows * self.classes)
        scales = len(KINDS) if self.kind == "logits" else 1
        lists = len(layout.widths(self.classes))
        last = (double, scales * self.count * self.rows) if self.narrow else (torch.int32, lists * self.rows)
        counters, *found, own = scratch(
            self.device, (torch.int32, COUNTERS), rows, core, core, (torch.int32, self.rows), rows, rows, last
        )
        self.counters: Place = counters
        self.total, self.core_low, self.core_high, self.size, self.need, self.base = found
        self.wide = own
        arrays: tuple[Array, ...] = (self.members, *out, *found, counters, own)
        numbers = (self.rows, self.classes, self.count, self.row_tolerance)
        if self.narrow:
            constants = {"KIND": KINDS[self.kind], "ROWS": layout.NARROW_ROWS}
            describe_lanes = kernel("narrow", "describe_lanes")
            describe_lanes(self.at, -(-self.rows // layout.NARROW_ROWS), arrays, numbers, constants, num_warps=4)
            return
        counters.tensor().zero_()
        if self.single:
            constants, warps = layout.single_tile(self.classes)
            constants["CLASSES"] = self.classes
            describe_rows, registers = kernel("single", "describe_single"), layout.single_registers(warps)
        else:
            tile, warps = layout.tile(self.members)
            constants = {"KIND": KINDS[self.kind], **tile}
            describe_rows, registers = kernel("bounds", "describe_rows"), layout.REGISTERS
        programs = -(-self.rows // constants["ROWS"])
        describe_rows(self.at, programs, arrays, numbers, constants, num_warps=warps, maxnreg=registers)

    def prepare(self, max_nodes: int, /) -> None:
        """Scratch memory of all that follows: it is there before the first stream begins and until the last is done."""
        double, processed = torch.float64, processors(self.device)
        self.max_nodes = max_nodes
        self.lane_programs = min(-(-self.rows // layout.LANES), 32 * processed)
        self.search_sizes = [
            (min(self.rows, layout.search_programs(width) * processed), min(12 * width + 256, 3 * max_nodes + 8))
            for width in self.searches
        ]
        sizes = list(zip(self.search_sizes, self.searches, strict=True))
        self.left, self.value, self.bound, self.lanes, *places = scratch(
            self.device,
            (torch.int32, len(self.searches) * self.rows),
            (double, self.rows),
            (double, self.rows),
            (double, self.lane_programs * 3 * self.classes * layout.LANES if self.narrow else 0),
            *((double, programs * 5 * width) for (programs, _), width in sizes),
            *((double, programs * 4 * height) for (programs, height), _ in sizes),
        )
        self.workspaces, self.stacks = places[: len(sizes)], places[len(sizes) :]

    def close(self, tolerance: float, /) -> None:
        """The root of every row's search; the rows that it leaves open are listed."""
        if self.narrow:
            self._close_lanes(tolerance)
        else:
            for i, width in enumerate(layout.widths(self.classes)):
                self._close_at_root(i, width, tolerance)

    def search(self, tolerance: float, /) -> None:
        """The lower entropy of the rows that the root leaves open.

        How many they are nobody asks: the lists of rows and their lengths stay on the device. Rows with many open classes
        begin first, and beside the others, because the longest search ends last.
        """
        if len(self.searches) == 1:
            self._search_rows(0, tolerance)
            return
        with beside(self.device, len(self.searches)) as streams:
            for i, stream in reversed([*enumerate(streams)]):
                with stream:
                    self._search_rows(i, tolerance)

    def _close_lanes(self, tolerance: float) -> None:
        arrays = (*self._open_classes(), self.lanes, self.left, self.counters)
        numbers = (tolerance, self.rows, *self.steps, self.classes)
        close_lanes = kernel("narrow_root", "close_lanes")
        close_lanes(self.at, self.lane_programs, arrays, numbers, {"ROWS": layout.LANES}, num_warps=1)

    def _close_at_root(self, i: int, width: int, tolerance: float) -> None:
        warps = layout.root_warps(width)
        kernel("root", "close_at_root")(
            self.at,
            min(self.rows, max(1, 32 // warps) * processors(self.device)),
            (self.wide, *self._open_classes(), self.left, self.counters),
            (tolerance, self.rows, *self.steps),
            {"WHICH": i, "WIDTH": width},
            num_warps=warps,
        )

    def _search_rows(self, i: int, tolerance: float) -> None:
        width = self.searches[i]
        programs, height = self.search_sizes[i]
        kernel("search", "search_rows")(
            self.at,
            programs,
            (self.left, *self._open_classes(), self.workspaces[i], self.stacks[i], self.counters),
            (tolerance, self.max_nodes, self.rows, *self.steps, height),
            {"WHICH": i, "WIDTH": width},
            num_warps=layout.search_warps(width),
        )

    def refine(self, better: Refine, start: int, tolerance: float, /) -> None:
        """Put better values and bounds where the search has not met them; ``start`` is the number of the first row."""
        value, bound = self.value.tensor(), self.bound.tensor()
        left = (value - bound > tolerance).nonzero().view(-1)
        if len(left):
            value[left], bound[left] = better(left + start).to(value)

    def _open_classes(self) -> tuple[Place, ...]:
        return self.core_low, self.core_high, self.size, self.need, self.base, self.value, self.bound

    def finish(self, out: Sequence[Tensor], unit: float, tolerance: float, /) -> None:
        """Entropies in the caller's unit and precision: the four (rows,) of ``out``."""
        arrays: tuple[Array, ...] = (self.total, self.value, self.bound, *out, self.counters)
        finish_rows = kernel("finish", "finish_rows")
        finish_rows(self.at, -(-self.rows // 1024), arrays, (tolerance, unit, self.rows), {"BLOCK": 1024}, num_warps=4)

    def mark(self) -> int:
        """OPEN if a row is left open, INVALID if one is not a distribution, else zero: waits for the device."""
        return int(self.counters.room[0])
