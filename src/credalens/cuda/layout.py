"""How rows are laid out on the GPU: so many of a program, on so many warps, in lists by their open classes."""

from __future__ import annotations

from functools import cache

from torch import Tensor

__all__ = [
    "LANES",
    "MOST_CLASSES",
    "NARROW",
    "NARROW_ROWS",
    "REGISTERS",
    "root_warps",
    "search_programs",
    "search_warps",
    "searches",
    "single_registers",
    "single_tile",
    "tile",
    "widths",
]

MOST_CLASSES = 4096  # a row must fit in the registers of one program
WIDTHS = (64, 256, 1024, 4096)  # open classes of the rows whose roots are solved together
NARROW = 32  # classes up to which one thread describes a row
NARROW_ROWS = 128  # of a program then
LANES = 32  # and when it solves the root: a thread's scratch values must never lie with another
THREAD_CLASSES = 8  # of a thread, where a row lies on many
SINGLE_CLASSES = 16  # the same where float32 does
REGISTERS = 128  # of such a thread: sixteen warps on a multiprocessor, and little spilled or nothing
SINGLE_REGISTERS = 88  # the same in float32: 22 warps, fastest of those timed on an H200
SHARED_REGISTERS = 80  # and where warps share a row: while some wait for each other, more are at work


def tile(members: Tensor, /) -> tuple[dict[str, int], int]:
    """How rows are laid out in float64, and on how many warps: by 16 bytes if the classes allow it."""
    classes = members.shape[2]
    width = max(64, 1 << (classes - 1).bit_length())
    rows = max(1, 32 * THREAD_CLASSES // width)
    multiple = min(4, 16 // members.element_size())
    multiple = 1 if classes % multiple else multiple
    warps = max(1, width // (32 * THREAD_CLASSES))
    block = 32 * multiple // rows if warps == 1 else width
    return {"ROWS": rows, "BLOCKS": width // block, "BLOCK": block, "MULTIPLE": multiple}, warps


def single_tile(classes: int, /) -> tuple[dict[str, int], int]:
    """The same in float32: the classes of a block lie on as many threads, so that no value ever changes its thread."""
    width = max(64, 1 << (classes - 1).bit_length())
    rows = max(1, 32 * SINGLE_CLASSES // width)
    return {"ROWS": rows, "BLOCKS": SINGLE_CLASSES, "BLOCK": width // SINGLE_CLASSES}, max(
        1, width // (32 * SINGLE_CLASSES)
    )


def single_registers(warps: int, /) -> int:
    """Of a thread, where so many warps have a row."""
    return SINGLE_REGISTERS if warps == 1 else SHARED_REGISTERS


def root_warps(width: int, /) -> int:
    """Of the root of a row with at most so many open classes."""
    return max(1, width // 256)


def search_warps(width: int, /) -> int:
    """Of a search in so many open classes."""
    return max(1, width // 128)


def search_programs(width: int, /) -> int:
    """The same as programs on a multiprocessor."""
    return max(1, (32 if width < 128 else 16) // search_warps(width))


@cache
def widths(classes: int, /) -> tuple[int, ...]:
    """The numbers of open classes up to which rows of so many classes have their roots solved together."""
    return (*(w for w in WIDTHS if w < classes), min(w for w in WIDTHS if w >= classes))


@cache
def searches(classes: int, /) -> tuple[int, ...]:
    """The same for the searches: half of each, and each, as far as rows can need them."""
    if classes <= NARROW:
        return (NARROW // 2 if 2 * classes <= NARROW else NARROW,)
    return tuple(half for width in widths(classes) for half in (width // 2, width) if half < 2 * classes)
