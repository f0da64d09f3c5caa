"""The one source of rows: member predictions from memory or files, read chunk by chunk and wrapped.

Evaluation, guards and scoring all read so; parts of tables that scoring joins are sources of their own. Each format of
scored rows is a `RowWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import rounding
from credalens.checks.members import naming_bad_row
from credalens.checks.options import check_count
from credalens.core.recalibration import Recalibration
from credalens.prediction import CredalPrediction, wrap_members
from credalens.storage.predictions import Predictions

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""
MEMORY: Final = 128 * 2**20  # bytes that one chunk may take while it is worked on
FIRST_ROWS: Final = 16


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a source.

    :ivar members: the members' predictions (members, rows, classes).
    :ivar ids: row ids as an Arrow array, if there are any.
    """

    start: int
    members: NDArray
    labels: NDArray | None = None
    ids: Any = None

    def __len__(self) -> int:
        return int(self.members.shape[1])


class RowSource(Protocol):
    """Rows in order, and what is known about them; as text it is what errors call it, a file or a name."""

    @property
    def logits(self) -> bool:
        """True where the members' predictions are logits."""

    @property
    def dtype(self) -> str:
        """The precision they are stored in."""

    def chunks(self, rows: int | None = None, /) -> Iterator[Chunk]:
        """All rows in order, ``rows`` at a time, or as many as fit."""

    def row_name(self, chunk: Chunk, row: int, member: int, /) -> str:
        """A row and a member as the user knows them."""


class RowWriter(Protocol):
    """Writes rows that were scored, in order: the output of a scoring run."""

    def write(self, columns: dict[str, NDArray], ids: Any = None, /) -> None:
        """Write some rows after those before, with their ids if they have any."""

    def finish(self, notes: Mapping[str, str], /) -> None:
        """Write what is left, and notes about it all where the format has a place for them."""

    def close(self) -> None:
        """Let go of files, also after an error."""


def rows_at_a_time(members: int, classes: int, asked: int | None = None, /) -> int:
    """The rows of a chunk, as asked or as fit: about three float64 copies of the members and sixteen (rows, classes) arrays."""
    return max(1, MEMORY // (8 * classes * (3 * members + 16))) if asked is None else check_count(asked, "chunk_rows")


def wrap_chunk(
    source: RowSource, chunk: Chunk, /, *, base: float = 2, recalibration: Recalibration | None = None,
    threads: int | None = None,
) -> CredalPrediction:  # fmt: skip
    """The credal prediction of rows that were read from a source; an error names the row as the source does."""
    with naming_bad_row(source, chunk.start, row_name=partial(source.row_name, chunk)):
        options = {"base": base, "recalibration": recalibration, "threads": threads}
        prediction = wrap_members(chunk.members, logits=source.logits, **options)
    stored = rounding(source.dtype, logits=source.logits)  # a file may hold fewer digits than what was read from it
    return replace(prediction, _rounding=max(prediction._rounding, stored))


@dataclass(frozen=True, eq=False)
class Source:
    """The member predictions (members, rows, classes) of one data set under its name: a ``RowSource``.

    :ivar labelled: whether chunks bring the labels of the file.
    """

    name: str
    predictions: NDArray | Predictions
    logits: bool
    labelled: bool = False

    def __str__(self) -> str:
        return self.file or self.name

    @property
    def shape(self) -> tuple[int, int, int]:
        """Members, rows and classes."""
        members, rows, classes = self.predictions.shape
        return members, rows, classes

    @property
    def rows(self) -> int:
        """The number of inputs."""
        return self.shape[1]

    @property
    def dtype(self) -> str:
        """The precision that they are stored in."""
        return str(self.predictions.dtype)

    @property
    def rounding(self) -> float:
        """Of the members' probabilities, relatively."""
        return rounding(self.dtype, logits=self.logits)

    @property
    def file(self) -> str | None:
        """The file they are read from."""
        return str(self.predictions.path) if isinstance(self.predictions, Predictions) else None

    def chunks(self, rows: int | None = None, /) -> Iterator[Chunk]:
        """All rows in order, ``rows`` at a time, or as many as fit; a file is never in memory as a whole."""
        members, total, classes = self.shape
        size = rows_at_a_time(members, classes, rows)
        for start in range(0, total, size):
            yield self.read(start, min(start + size, total))

    def read(self, start: int, stop: int, /) -> Chunk:
        """Rows start..stop as one chunk."""
        if not isinstance(self.predictions, Predictions):
            return Chunk(start, self.predictions[:, start:stop])
        labels = self.predictions.read_labels(start, stop) if self.labelled else None
        return Chunk(start, self.predictions.read(start, stop), labels)

    def row_name(self, chunk: Chunk, row: int, member: int, /) -> str:
        """The numbers of a row and a member."""
        return f"row {row}, member {member}"

    def first_rows(self) -> NDArray:
        """The first few rows."""
        return self.read(0, min(FIRST_ROWS, self.rows)).members

    def take(self, rows: NDArray[np.intp], /) -> NDArray:
        """The predictions of these rows, in rising order."""
        taken = []
        for chunk in self.chunks():
            own = rows[(rows >= chunk.start) & (rows < chunk.start + len(chunk))]
            taken.append(chunk.members[:, own - chunk.start])
        return np.concatenate(taken, axis=1)
