"""What is scored, cut into parts: one file here, or tables in folders (``joined``)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final

from numpy.typing import NDArray

from credalens.storage import Predictions

__all__ = ["Chunk", "FileInput", "PartedInput", "fingerprint"]

BLOCKS, BLOCK = 64, 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Some rows of a part: the first row's number, the row ids if there are any, values (members, rows, classes)."""

    start: int
    ids: Any
    values: NDArray


class PartedInput(Protocol):
    """Member predictions in parts, the units of work. It can be sent to another machine that reaches the same files."""

    @property
    def logits(self) -> bool:
        """Whether they are logits."""

    @property
    def id_column(self) -> str | None:
        """The name of the row ids, which the output has too."""

    @property
    def rows(self) -> int | None:
        """How many rows there are; None where that is not known before they are read."""

    @property
    def parts(self) -> int:
        """How many parts there are."""

    def part_name(self, part: int, /) -> str:
        """The name of a part, relative to the output."""

    def path(self, part: int, /) -> str:
        """The file that a part comes from, for messages."""

    def scattered(self, part: int, /) -> tuple[int, ...]:
        """Which tables hold the rows of a part elsewhere than side by side with it; see ``TableInput``."""

    def state(self, part: int, scattered: Container[int], /) -> Any:
        """Plain values that change when a file behind a part is written again."""

    def chunks(self, part: int, rows: int, scattered: Container[int], /) -> Iterator[Chunk]:
        """A part in order, at most ``rows`` rows at a time; a part without rows yields one empty chunk."""

    def member_name(self, member: int, /) -> str:
        """A member as the user knows it."""


@final
@dataclass(frozen=True)
class FileInput:
    """One file: its parts are ranges of ``part_rows`` rows."""

    predictions: Predictions
    part_rows: int
    fingerprint: str
    id_column: None = None

    @property
    def logits(self) -> bool:
        """Whether they are logits."""
        return self.predictions.logits

    @property
    def rows(self) -> int:
        """How many rows the file has."""
        return self.predictions.rows

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.rows // self.part_rows)

    def part_name(self, part: int, /) -> str:
        """Parts are numbered."""
        return f"part-{part:08d}.arrow"

    def path(self, part: int, /) -> str:
        """The file."""
        return str(self.predictions.path)

    def scattered(self, part: int, /) -> tuple[int, ...]:
        """All members of a row are in one place."""
        return ()

    def state(self, part: int, scattered: Container[int], /) -> Any:
        """What changes with the file, and the range."""
        return [self.fingerprint, *self._range(part)]

    def chunks(self, part: int, rows: int, scattered: Container[int], /) -> Iterator[Chunk]:
        """The range as one chunk."""
        start, stop = self._range(part)
        yield Chunk(start, None, self.predictions.read(start, stop))

    def member_name(self, member: int, /) -> str:
        """Members have numbers only."""
        return f"member {member}"

    def _range(self, part: int) -> tuple[int, int]:
        return part * self.part_rows, min((part + 1) * self.part_rows, self.rows)


def fingerprint(path: Path, /) -> str:
    """A hash of a file's size, time of change and 64 blocks spread over it: cheap, and changed by any ordinary edit."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        digest = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode())
        for number in range(BLOCKS):
            file.seek(max(0, status.st_size - BLOCK) * number // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()
