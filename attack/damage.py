"""Damage to files: what disks, transfers and people with bad intentions do to bytes."""

from __future__ import annotations

import os
import pickle
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attack.case import Case

SPRUNG = "sprung"
EXTREMES = (0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**33, 2**62, 2**63 - 1, 2**64 - 1)


@dataclass(frozen=True)
class Trap:
    """Makes a folder ``sprung`` when it is unpickled."""

    folder: Path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, (str(self.folder / SPRUNG),)


def damaged(case: Case, content: bytes, /) -> tuple[str, bytes]:
    """The name of the damage, and the content after one to three of them."""
    names = []
    for _ in range(case.choose(1, 1, 1, 2, 3)):
        kind = case.choose(*KINDS)
        names.append(kind.__name__)
        content = kind(case, content)
    return "+".join(names), content


def _place(case: Case, content: bytes) -> int:
    """Anywhere, but more often near the ends, where formats keep what they say about themselves."""
    size = len(content)
    near = min(size, 400)
    return case.choose(case.between(0, size), case.between(0, near), case.between(size - near, size))


def _run(case: Case, content: bytes) -> tuple[int, int]:
    start = _place(case, content)
    return start, min(len(content), start + case.choose(1, 2, 4, 8, 64, 4096))


def flip_bits(case: Case, content: bytes) -> bytes:
    """One to eight bits."""
    changed = bytearray(content)
    for _ in range(case.between(1, 8)):
        if changed:
            changed[min(_place(case, content), len(content) - 1)] ^= 1 << case.between(0, 7)
    return bytes(changed)


def overwrite(case: Case, content: bytes) -> bytes:
    """A run of random bytes, or of zeros."""
    start, stop = _run(case, content)
    return content[:start] + case.choose(case.rng.bytes(stop - start), bytes(stop - start)) + content[stop:]


def cut_end(case: Case, content: bytes) -> bytes:
    """The rest is missing."""
    return content[: _place(case, content)]


def cut_out(case: Case, content: bytes) -> bytes:
    """A run is missing."""
    start, stop = _run(case, content)
    return content[:start] + content[stop:]


def insert(case: Case, content: bytes) -> bytes:
    """Random bytes in between."""
    place = _place(case, content)
    return content[:place] + case.rng.bytes(case.choose(1, 3, 8, 100)) + content[place:]


def repeat(case: Case, content: bytes) -> bytes:
    """A run comes twice."""
    start, stop = _run(case, content)
    return content[:stop] + content[start:]


def move(case: Case, content: bytes) -> bytes:
    """A run comes elsewhere."""
    start, stop = _run(case, content)
    rest = content[:start] + content[stop:]
    place = _place(case, rest)
    return rest[:place] + content[start:stop] + rest[place:]


def other_number(case: Case, content: bytes) -> bytes:
    """A number in text becomes another one of any length: shapes, offsets, settings."""
    numbers = list(re.finditer(rb"\d+", content[:4096]))
    if not numbers:
        return content
    match = case.choose(*numbers)
    number = case.choose(b"0", b"-1", b"7", b"1e9", b"99999999", b"1" * 400, str(case.between(0, 100)).encode())
    return content[: match.start()] + number + content[match.end() :]


def other_integer(case: Case, content: bytes) -> bytes:
    """Four or eight bytes become an extreme whole number."""
    start = _place(case, content)
    size, code = case.choose((4, "<I"), (8, "<Q"))
    number = struct.pack(code, case.choose(*EXTREMES) % 2 ** (8 * size))
    return content[:start] + number + content[start + size :]


def add_pickle(case: Case, content: bytes) -> bytes:
    """A pickle that would run code, in between or as the rest."""
    place, trap = _place(case, content), pickle.dumps(Trap(case.folder))
    return content[:place] + trap + case.choose(b"", content[place:])


KINDS = (
    flip_bits, flip_bits, overwrite, cut_end, cut_out, insert, repeat, move, other_number, other_integer, add_pickle,
)  # fmt: skip


def array_of_traps(case: Case) -> np.ndarray:
    """Objects that would run code, in the shape of predictions."""
    objects = np.empty((2, 3, 4), dtype=object)
    objects[:] = Trap(case.folder)
    return objects
