"""What is scored, cut into parts: one file here, or tables in folders (``joined``)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from numpy.typing import NDArray

from credalens.storage import Predictions

BLOCKS: Final = 64
BLOCK: Final = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Some rows of a part: the first row's number, the row ids and labels if there are any, values (members, rows, classes)."""

    start: int
    ids: Any
    values: NDArray
    labels: NDArray | None = None


@final
@dataclass(frozen=True)
class FileInput:
    """One file, whose parts are ranges of ``part_rows`` rows; the methods are those of ``TableInput``."""

    predictions: Predictions
    fingerprint: str
    part_rows: int

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.predictions.rows // self.part_rows)

    def part_name(self, part: int, /) -> str:
        """Parts are numbered."""
        return f"part-{part:08d}.arrow"

    def path(self, part: int, /) -> str:
        """The file."""
        return str(self.predictions.path)

    def member_name(self, member: int, /) -> str:
        """Members have numbers only."""
        return f"member {member}"

    def tables_to_gather(self, part: int, /) -> tuple[int, ...]:
        """There is no other table."""
        return ()

    def state(self, part: int, tables_to_gather: Container[int], /) -> Any:
        """What changes with the file, and the range."""
        return [self.fingerprint, *self._range(part)]

    def chunks(self, part: int, rows: int, tables_to_gather: Container[int], /) -> Iterator[Chunk]:
        """The range as one chunk."""
        start, stop = self._range(part)
        labels = self.predictions.read_labels(start, stop) if self.predictions.has_labels else None
        yield Chunk(start, None, self.predictions.read(start, stop), labels)

    def _range(self, part: int) -> tuple[int, int]:
        return part * self.part_rows, min((part + 1) * self.part_rows, self.predictions.rows)


def fingerprint(path: Path, /) -> str:
    """A hash of a file's size, time of change and 64 blocks spread over it: cheap, and changed by any ordinary edit."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        digest = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode())
        for number in range(BLOCKS):
            file.seek(max(0, status.st_size - BLOCK) * number // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()
