"""Rows on the GPU: which kernels run on how many rows at a time, and how the lower-entropy search goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["KINDS", "MOST_CLASSES", "Chunk", "Rows", "describe"]

KINDS = {"probs": 0, "logits": 1}
MOST_CLASSES = 4096  # a row must fit in the registers of one program
SCRATCH = 2**31  # bytes for the open classes of the rows in flight
WIDTHS = (64, 256, 1024, 4096)  # open classes of the rows whose roots are solved together
NARROW = 32  # classes up to which one thread describes a row
NARROW_ROWS = 128  # of a program then
LANES = 32  # and when it solves the root: a thread's scratch values must never lie with another
THREAD_CLASSES = 8  # of a thread, where a row lies on many
SINGLE_CLASSES = 16  # the same where float32 does
REGISTERS = 128  # of such a thread: sixteen warps on a multiprocessor, and little spilled or nothing
SINGLE_REGISTERS = 88  # the same in float32: 22 warps, fastest of those timed on an H200
SHARED_REGISTERS = 80  # and where warps share a row: while some wait for each other, more are at work
ALIGNED = 4  # integers from one counter to the next: Triton compiles anew for a pointer that is not a multiple of 16

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

    @classmethod
    def like(cls, members: Tensor, /) -> Rows:
        """Room for the results of members (count, rows, classes)."""
        _, rows, classes = members.shape
        dtype = members.dtype if members.dtype == torch.float64 else torch.float32

        def new(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=dtype, device=members.device)

        return cls(*(new(rows, classes) for _ in range(4)), *(new(rows) for _ in range(4)))


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
    else leaves the device but whether all rows were valid and whether one is open: one wait, after the last kernel.
    """
    _, rows, classes = members.shape
    results = Rows.like(members)
    size = min(rows, max(1, SCRATCH // (16 * classes)))
    with _current(members.device):
        for start in range(0, rows, size):
            part = slice(start, min(start + size, rows))
            out = Rows(*(x[part] for x in vars(results).values()))
            marks = torch.zeros(2, ALIGNED, dtype=torch.int32, device=members.device)
            bad, left = marks
            chunk = Chunk(members if size == rows else members[:, part].contiguous(), bad, kind, row_tolerance)
            chunk.describe(out)
            chunk.search(max_nodes, tolerance)
            chunk.finish(out, unit, left, tolerance)
            (invalid, *_), (is_open, *_) = marks.tolist()
            if invalid:
                return None
            if is_open and refine is not None:
                chunk.refine(refine, start, tolerance)
                chunk.finish(out, unit, left, tolerance)
    return results


class Chunk:
    """Rows in flight: their open classes and entropies in bits."""

    def __init__(self, members: Tensor, bad: Tensor, kind: str, row_tolerance: float) -> None:
        self.members, self.bad, self.kind, self.row_tolerance = members, bad, kind, row_tolerance
        _, self.rows, self.classes = members.shape
        self.narrow = self.classes <= NARROW
        self.steps = (1, self.rows) if self.narrow else (self.classes, 1)
        self.single = not self.narrow and kind == "probs" and members.dtype != torch.float64
        core = torch.float32 if self.single else torch.float64
        self.core_low, self.core_high = torch.empty((2, *members.shape[1:]), dtype=core, device=members.device)
        self.need, self.base, self.total, self.value, self.bound = (self._new(self.rows) for _ in range(5))
        self.size = self._new_integers(self.rows)
        self.widths = _widths(self.classes)
        self.searches = _searches(self.classes)
        wide, left = len(self.widths), len(self.searches)
        self.wide, self.left = self._new_integers(wide, self.rows), self._new_integers(left, self.rows)
        self.lengths = torch.zeros(wide + 2 * left, ALIGNED, dtype=torch.int32, device=members.device)
        self.lengths_left, self.cursors = self.lengths[wide:], self.lengths[wide + left :]

    def _new(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float64, device=self.members.device)

    def _new_integers(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int32, device=self.members.device)

    def describe(self, out: Rows) -> None:
        """Bounds, point predictions, upper entropy and open classes."""
        arrays = (out.lower, out.upper, out.probability, out.mean, self.total)
        sizes = (self.rows, self.classes, len(self.members), self.row_tolerance)
        core = (self.core_low, self.core_high, self.size, self.need, self.base, self.bad)
        if self.narrow:
            from credalens.device.narrow import describe_lanes

            scales = self._new(2, len(self.members), self.rows)
            describe_lanes[(-(-self.rows // NARROW_ROWS),)](
                self.members, *arrays, *core, scales, *sizes, KIND=KINDS[self.kind], ROWS=NARROW_ROWS, num_warps=4
            )
            return
        arguments = (self.members, *arrays, *core, self.wide, self.lengths, *sizes)
        if self.single:
            from credalens.device.single import describe_single

            tile, warps = _single_tile(self.classes)
            most = SINGLE_REGISTERS if warps == 1 else SHARED_REGISTERS
            describe_single[(-(-self.rows // tile["ROWS"]),)](
                *arguments, **tile, CLASSES=self.classes, num_warps=warps, maxnreg=most
            )
        else:
            from credalens.device.bounds import describe_rows

            tile, warps = _tile(self.members)
            describe_rows[(-(-self.rows // tile["ROWS"]),)](
                *arguments, KIND=KINDS[self.kind], **tile, num_warps=warps, maxnreg=REGISTERS
            )

    def search(self, max_nodes: int, tolerance: float) -> None:
        """Lower entropy: what the root certifies, then a search for the rows that it leaves open.

        How many they are nobody asks: the lists of rows and their lengths stay on the device. Rows with many open classes
        begin first, and beside the others, because the longest search ends last.
        """
        self.close(tolerance)
        # Scratch memory is there before the first stream begins and until the last is done: none waits for what comes later.
        scratch = [self._scratch(width, max_nodes) for width in self.searches]
        with _beside(self.members.device, len(self.searches)) as streams:
            for i, stream in reversed([*enumerate(streams)]):
                with stream:
                    self._search_rows(i, scratch[i], max_nodes, tolerance)

    def close(self, tolerance: float) -> None:
        """The root of every row's search; the rows that it leaves open are listed."""
        if self.narrow:
            self._close_lanes(tolerance)
        else:
            for i, width in enumerate(self.widths):
                self._close_at_root(i, width, tolerance)

    def _close_lanes(self, tolerance: float) -> None:
        from credalens.device.narrow_root import close_lanes

        programs = min(-(-self.rows // LANES), 32 * _processors(self.members.device))
        close_lanes[(programs,)](
            *self._open_classes(),
            self._new(programs, 3, self.classes, LANES),
            self.left,
            self.lengths_left,
            tolerance,
            self.rows,
            *self.steps,
            self.classes,
            ROWS=LANES,
            num_warps=1,
        )

    def _close_at_root(self, i: int, width: int, tolerance: float) -> None:
        from credalens.device.root import close_at_root

        warps = max(1, width // 256)
        close_at_root[(min(self.rows, max(1, 32 // warps) * _processors(self.members.device)),)](
            self.wide[i],
            self.lengths[i],
            *self._open_classes(),
            self.left[2 * i],
            self.lengths_left[2 * i],
            tolerance,
            self.rows,
            *self.steps,
            EVERY=i == 0,
            WIDTH=width,
            num_warps=warps,
        )

    def _scratch(self, width: int, max_nodes: int) -> tuple[Tensor, Tensor]:
        """For each program that searches rows of at most so many open classes: their bounds, and a stack of nodes."""
        programs = min(
            self.rows, max(1, (32 if width < 128 else 16) // _warps(width)) * _processors(self.members.device)
        )
        height = min(12 * width + 256, 3 * max_nodes + 8)
        return self._new(programs, 5, width), self._new(programs, height, 4)

    def _search_rows(self, i: int, scratch: tuple[Tensor, Tensor], max_nodes: int, tolerance: float) -> None:
        from credalens.device.search import search_rows

        programs, height, _ = scratch[1].shape
        search_rows[(programs,)](
            self.left[i],
            self.lengths_left[i],
            self.cursors[i],
            *self._open_classes(),
            *scratch,
            tolerance,
            max_nodes,
            *self.steps,
            height,
            WIDTH=self.searches[i],
            num_warps=_warps(self.searches[i]),
        )

    def refine(self, better: Refine, start: int, tolerance: float) -> None:
        """Put better values and bounds where the search has not met them; ``start`` is the number of the first row."""
        left = (self.value - self.bound > tolerance).nonzero().view(-1)
        if len(left):
            self.value[left], self.bound[left] = better(left + start).to(self.value)

    def _open_classes(self) -> tuple[Tensor, ...]:
        return self.core_low, self.core_high, self.size, self.need, self.base, self.value, self.bound

    def finish(self, out: Rows, unit: float, left: Tensor, tolerance: float) -> None:
        """Entropies in the caller's unit and precision; ``left`` becomes 1 where the search has left a row open."""
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
            left,
            tolerance,
            self.rows,
            BLOCK=1024,
        )


def _tile(members: Tensor) -> tuple[dict[str, int], int]:
    """How rows are laid out in float64, and on how many warps: by 16 bytes if the classes allow it."""
    classes = members.shape[2]
    width = max(64, 1 << (classes - 1).bit_length())
    rows = max(1, 32 * THREAD_CLASSES // width)
    multiple = min(4, 16 // members.element_size())
    multiple = 1 if classes % multiple else multiple
    warps = max(1, width // (32 * THREAD_CLASSES))
    block = 32 * multiple // rows if warps == 1 else width
    return {"ROWS": rows, "BLOCKS": width // block, "BLOCK": block, "MULTIPLE": multiple}, warps


def _single_tile(classes: int) -> tuple[dict[str, int], int]:
    """The same in float32: the classes of a block lie on as many threads, so that no value ever changes its thread."""
    width = max(64, 1 << (classes - 1).bit_length())
    rows = max(1, 32 * SINGLE_CLASSES // width)
    return {"ROWS": rows, "BLOCKS": SINGLE_CLASSES, "BLOCK": width // SINGLE_CLASSES}, max(
        1, width // (32 * SINGLE_CLASSES)
    )


def _warps(width: int) -> int:
    """Of a search in so many open classes."""
    return max(1, width // 128)


def _widths(classes: int) -> tuple[int, ...]:
    """The numbers of open classes up to which rows of so many classes have their roots solved together."""
    return (*(w for w in WIDTHS if w < classes), min(w for w in WIDTHS if w >= classes))


def _searches(classes: int) -> tuple[int, ...]:
    """The same for the searches: half of each, and each, as far as rows can need them."""
    if classes <= NARROW:
        return (NARROW // 2 if 2 * classes <= NARROW else NARROW,)
    return tuple(half for width in _widths(classes) for half in (width // 2, width) if half < 2 * classes)


@contextmanager
def _beside(device: torch.device, number: int) -> Iterator[list[AbstractContextManager[Any]]]:
    """So many streams that begin after what the current one has to do, and that it then waits for."""
    if device.type != "cuda" or number < 2:
        yield [nullcontext()] * number
        return
    current = torch.cuda.current_stream(device)
    streams = [torch.cuda.Stream(device) for _ in range(number)]  # type: ignore[no-untyped-call]
    for stream in streams:
        stream.wait_stream(current)
    try:
        yield [torch.cuda.stream(stream) for stream in streams]
    finally:
        for stream in streams:
            current.wait_stream(stream)


def _current(device: torch.device) -> AbstractContextManager[Any]:
    """Kernels start on the current device, which need not be that of the tensors."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _processors(device: torch.device) -> int:
    """How many multiprocessors the device has; one where kernels are interpreted."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
