"""How rows are laid out on the GPU: rows a program, warps a row, and lists of rows by their open classes."""

from __future__ import annotations

from functools import cache

from torch import Tensor

MOST_CLASSES = 4096  # a row must fit in the registers of one program
WIDTHS = (64, 256, 1024, 4096)  # open classes of the rows whose roots are solved together
FLOAT64_THREAD_CLASSES = 8  # classes of a thread
FLOAT32_THREAD_CLASSES = 16  # the same in float32
FLOAT64_REGISTERS = 128  # registers of a thread: sixteen warps on a multiprocessor, and little is spilled
FLOAT32_REGISTERS = 88  # 22 warps, the fastest of those timed on an H200
FLOAT32_SHARED_REGISTERS = 80  # where warps share a row: while some wait for each other, more are at work


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
    return {"ROWS": rows, "BLOCKS": FLOAT32_THREAD_CLASSES, "BLOCK": width // FLOAT32_THREAD_CLASSES}, max(
        1, width // (32 * FLOAT32_THREAD_CLASSES)
    )


def float32_registers(warps: int, /) -> int:
    """Registers of a thread of the float32 kernel, where a row has ``warps`` warps."""
    return FLOAT32_REGISTERS if warps == 1 else FLOAT32_SHARED_REGISTERS


def root_warps(width: int, /) -> int:
    """Warps of the root of a row with at most ``width`` open classes."""
    return max(1, width // 256)


def branch_warps(width: int, /) -> int:
    """Warps of a search among ``width`` open classes."""
    return max(1, width // 128)


def branch_programs(width: int, /) -> int:
    """Programs on a multiprocessor that search among ``width`` open classes."""
    return max(1, (32 if width < 128 else 16) // branch_warps(width))


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
