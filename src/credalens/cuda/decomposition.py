"""Everything a credal prediction holds, computed on the GPU: which kernels run on how many rows at a time, and how rows are
laid out: rows a program, warps a row, and lists of rows by their open classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from credalens.core.decomposition import CredalArrays
from credalens.cuda.launch import (
    Array,
    ScratchArray,
    kernel,
    on_device,
    processors,
    result_arrays,
    scratch_arrays,
    side_streams,
)

KINDS = {"probs": 0, "logits": 1}
SCRATCH = 2**31  # bytes for the open classes of the rows in flight
COUNTERS, OPEN, INVALID = 32, 1, 2  # as in counters.py, which only Triton can import
MOST_CLASSES = 4096  # a row must fit in the registers of one program
WIDTHS = (64, 256, 1024, 4096)  # open classes of the rows whose roots are solved together
FLOAT64_THREAD_CLASSES = 8  # classes of a thread
FLOAT32_THREAD_CLASSES = 16  # the same in float32
FLOAT64_REGISTERS = 128  # registers of a thread: sixteen warps on a multiprocessor, and little is spilled
FLOAT32_REGISTERS = 88  # 22 warps, the fastest of those timed on an H200
FLOAT32_SHARED_REGISTERS = 80  # where warps share a row: while some wait for each other, more are at work

Refine = Callable[[Tensor], Tensor]
"""From row numbers to their lower entropies and certified bounds in bits, (2, rows)."""


def float64_tile(members: Tensor, /) -> tuple[dict[str, int], int]:
    """Constants of the float64 kernel and its warps; values are read by 16 bytes if the number of classes allows it."""
    classes = members.shape[2]
    width = max(64, 1 << (classes - 1).bit_length())
    rows = max(1, 32 * FLOAT64_THREAD_CLASSES // width)
    multiple = min(4, 16 // members.element_size())
    multiple = 1 if classes % multiple else multiple
    warps = max(1, width // (32 * FLOAT64_THREAD_CLASSES))
    block = 32 * multiple // rows if warps == 1 else width
    return {"ROWS": rows, "BLOCKS": width // block, "BLOCK": block, "MULTIPLE": multiple}, warps


def float32_tile(classes: int, /) -> tuple[dict[str, int], int]:
    """Constants of the float32 kernel and its warps; every class of a block has its own thread, so that no value moves."""
    width = max(64, 1 << (classes - 1).bit_length())
    rows = max(1, 32 * FLOAT32_THREAD_CLASSES // width)
    warps = max(1, width // (32 * FLOAT32_THREAD_CLASSES))
    return {"ROWS": rows, "BLOCKS": FLOAT32_THREAD_CLASSES, "BLOCK": width // FLOAT32_THREAD_CLASSES}, warps


def branch_warps(width: int, /) -> int:
    """Warps of a search among ``width`` open classes."""
    return max(1, width // 128)


@cache
def root_widths(classes: int, /) -> tuple[int, ...]:
    """Open classes up to which rows of ``classes`` classes have their roots solved together."""
    return (*(w for w in WIDTHS if w < classes), min(w for w in WIDTHS if w >= classes))


@cache
def branch_widths(classes: int, /) -> tuple[int, ...]:
    """Open classes up to which rows are searched together: half of each root width, and each, as far as rows need them."""
    if classes <= WIDTHS[0] // 2:
        return (16 if classes <= 16 else WIDTHS[0] // 2,)
    return tuple(half for width in root_widths(classes) for half in (width // 2, width) if half < 2 * classes)


def decompose(
    members: Tensor, kind: str, /, *, row_tolerance: float, unit: float, max_nodes: int, tolerance: float,
    refine: Refine | None = None,
) -> CredalArrays | None:  # fmt: skip
    """All results for contiguous members (count, rows, classes), or None if a row is not a distribution.

    ``unit`` turns bits into the caller's unit. ``refine`` is called with the rows that ``max_nodes`` nodes leave open. The
    host waits for the device once, after the last kernel, to read whether all rows were valid and whether one is open. The
    first kernel starts as soon as it can; the memory of the later ones is allocated while it runs.
    """
    _, rows, classes = members.shape
    tolerance = float(tolerance)  # Triton compiles anew for an integer
    size = min(rows, max(1, SCRATCH // (16 * classes)))
    with on_device(members.device):
        bounds, entropies = result_arrays(members, classes), None
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            chunk = Chunk(members if size == rows else members[:, part].contiguous(), kind, row_tolerance)
            chunk.decompose(bounds if size == rows else [x[part] for x in bounds])
            entropies = entropies or result_arrays(members)
            outputs = entropies if size == rows else [x[part] for x in entropies]
            chunk.allocate(max_nodes)
            chunk.solve_roots(tolerance)
            chunk.branch(tolerance)
            chunk.write_results(outputs, unit, tolerance)
            mark = int(chunk.counters.buffer[0])  # waits for the device
            if mark == INVALID:
                return None
            if mark == OPEN and refine is not None:
                chunk.refine(refine, start, tolerance)
                chunk.write_results(outputs, unit, tolerance)
    return CredalArrays(*bounds, *(entropies or ()))


class Chunk:
    """Rows in flight: their open classes and their entropies in bits."""

    def __init__(self, members: Tensor, kind: str, row_tolerance: float, /) -> None:
        self.members, self.kind, self.row_tolerance = members, kind, row_tolerance
        self.count, self.rows, self.classes = members.shape
        self.device = members.device
        self.compiled_for = (self.device, self.classes)
        self.steps = self.classes, 1  # from row to row and from class to class of the bounds
        self.float32 = kind == "probs" and members.dtype != torch.float64
        self.branch_widths = branch_widths(self.classes)

    def decompose(self, outputs: Sequence[Tensor], /) -> None:
        """Bounds, point predictions, upper entropy and open classes; ``outputs`` are the four arrays (rows, classes)."""
        arrays: tuple[Array, ...] = (self.members, *outputs, *self._allocate_open_classes())
        numbers = (self.rows, self.classes, self.count, self.row_tolerance)
        self.counters.tensor().zero_()
        if self.float32:
            constants, warps = float32_tile(self.classes)
            constants["CLASSES"] = self.classes
            decompose_rows = kernel("decompose.float32", "decompose_float32")
            registers = FLOAT32_REGISTERS if warps == 1 else FLOAT32_SHARED_REGISTERS
        else:
            tile, warps = float64_tile(self.members)
            constants = {"KIND": KINDS[self.kind], **tile}
            decompose_rows = kernel("decompose.float64", "decompose_float64")
            registers = FLOAT64_REGISTERS
        programs = -(-self.rows // constants["ROWS"])
        decompose_rows(self.compiled_for, programs, arrays, numbers, constants, num_warps=warps, maxnreg=registers)

    def _allocate_open_classes(self) -> tuple[ScratchArray, ...]:
        """The upper entropies, the open classes, the counters and what the kernels need beside them, in their order."""
        int32, double = torch.int32, torch.float64
        core = (torch.float32 if self.float32 else double, self.rows * self.classes)
        lists = (int32, len(root_widths(self.classes)) * self.rows)
        rows = (double, self.rows)
        self.counters, *open_classes, self.many_open = scratch_arrays(
            self.device, (int32, COUNTERS), rows, core, core, (int32, self.rows), rows, rows, lists
        )
        self.total, self.core_low, self.core_high, self.size, self.need, self.base = open_classes
        return *open_classes, self.counters, self.many_open

    def allocate(self, max_nodes: int, /) -> None:
        """Scratch memory of all that follows: it is there before the first stream begins and until the last is done."""
        double, multiprocessors = torch.float64, processors(self.device)
        self.max_nodes = max_nodes
        self.branch_sizes = []
        for width in self.branch_widths:
            programs = max(1, (32 if width < 128 else 16) // branch_warps(width)) * multiprocessors
            self.branch_sizes.append((min(self.rows, programs), min(12 * width + 256, 3 * max_nodes + 8)))
        sizes = list(zip(self.branch_sizes, self.branch_widths, strict=True))
        self.open_rows, self.value, self.bound, *branch_arrays = scratch_arrays(
            self.device,
            (torch.int32, len(self.branch_widths) * self.rows),
            (double, self.rows),
            (double, self.rows),
            *((double, programs * 5 * width) for (programs, _), width in sizes),
            *((double, programs * 4 * height) for (programs, height), _ in sizes),
        )
        self.workspaces, self.stacks = branch_arrays[: len(sizes)], branch_arrays[len(sizes) :]

    def solve_roots(self, tolerance: float, /) -> None:
        """The root of every row's search; the rows that it leaves open are listed."""
        for i, width in enumerate(root_widths(self.classes)):
            warps = max(1, width // 256)
            kernel("lower.root", "root_rows")(
                self.compiled_for,
                min(self.rows, max(1, 32 // warps) * processors(self.device)),
                (self.many_open, *self._open_classes(), self.open_rows, self.counters),
                (tolerance, self.rows, *self.steps),
                {"WHICH": i, "WIDTH": width},
                num_warps=warps,
            )

    def branch(self, tolerance: float, /) -> None:
        """The lower entropy of the rows that the root leaves open.

        The lists of rows and their lengths stay on the device. Rows with many open classes begin first, on streams beside
        the others, because the longest search ends last.
        """
        if len(self.branch_widths) == 1:
            self._branch(0, tolerance)
            return
        with side_streams(self.device, len(self.branch_widths)) as streams:
            for i, stream in reversed([*enumerate(streams)]):
                with stream:
                    self._branch(i, tolerance)

    def _branch(self, i: int, tolerance: float) -> None:
        width = self.branch_widths[i]
        programs, height = self.branch_sizes[i]
        kernel("lower.branch", "search_rows")(
            self.compiled_for,
            programs,
            (self.open_rows, *self._open_classes(), self.workspaces[i], self.stacks[i], self.counters),
            (tolerance, self.max_nodes, self.rows, *self.steps, height),
            {"WHICH": i, "WIDTH": width},
            num_warps=branch_warps(width),
        )

    def refine(self, better: Refine, start: int, tolerance: float, /) -> None:
        """Replace values and bounds that are still apart by better ones; ``start`` is the number of the first row."""
        value, bound = self.value.tensor(), self.bound.tensor()
        apart = (value - bound > tolerance).nonzero().view(-1)
        if len(apart):
            value[apart], bound[apart] = better(apart + start).to(value)

    def _open_classes(self) -> tuple[ScratchArray, ...]:
        return self.core_low, self.core_high, self.size, self.need, self.base, self.value, self.bound

    def write_results(self, outputs: Sequence[Tensor], unit: float, tolerance: float, /) -> None:
        """Entropies in the caller's unit and precision: the four arrays (rows,) of ``outputs``."""
        arrays: tuple[Array, ...] = (self.total, self.value, self.bound, *outputs, self.counters)
        write = kernel("counters", "write_results")
        numbers = (tolerance, unit, self.rows)
        write(self.compiled_for, -(-self.rows // 1024), arrays, numbers, {"BLOCK": 1024}, num_warps=4)
