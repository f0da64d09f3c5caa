"""The rows of a part with the predictions of all tables, joined by row id, in chunks."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.scoring.gather import gather
from credalens.scoring.places import Place
from credalens.scoring.tables import MemberColumns, Table, batches, columns_in, values_of
from credalens.storage.formats.suffixes import UnsuitableError, readable

__all__ = ["Chunk", "Inputs"]

GATHERED, IN_ALL = 256 * 2**20, 2**30  # bytes of one table, and of all, that are gathered at a time
ID_ROWS = 1 << 18


@dataclass(frozen=True)
class Chunk:
    """Some rows of a part: the first row's number, the row ids if there are any, values (members, rows, classes)."""

    start: int
    ids: Any
    values: NDArray


@dataclass(frozen=True)
class Inputs:
    """One table, or several that describe the same rows; the first one's parts are the units of work.

    Parts of two tables are partners when both tables have as many files: the first with the first, in the order of
    their names. Where the ids of partners are equal both are read side by side; elsewhere just the rows with the ids of
    the part are gathered.
    """

    tables: tuple[Table, ...]
    columns: tuple[MemberColumns, ...]
    id_column: str | None
    logits: bool

    def chunks(self, number: int, rows: int, scattered: Container[int], /) -> Iterator[Chunk]:
        """A part of the first table, ``rows`` rows at a time, with the members of all tables, gathered where ``scattered``."""
        part, own = self.tables[0].part(number), self.columns[0]
        names = [*own.names, *([] if self.id_column is None else [self.id_column])]
        others = [
            self._gathered(number, place, rows) if place in scattered else self._beside(number, place, rows)
            for place in range(1, len(self.tables))
        ]
        start = 0
        for batch, *rest in zip_longest(batches(part, names, rows), *others):
            self._check_rows(part, batch, rest)
            with readable(Path(part.path)):
                values = values_of(batch, own, start=start)
                ids = None if self.id_column is None else _ids_of(batch[self.id_column], self.id_column, start)
            yield Chunk(start, ids, values if not rest else np.concatenate([values, *rest]))
            start += len(batch)

    def partner(self, number: int, place: int, /) -> Place | None:
        """The file of table ``place`` that may hold the same rows as a part of the first table."""
        first, other = self.tables[0], self.tables[place]
        return other.part(number) if len(first.parts) == len(other.parts) else None

    def table_of(self, member: int, /) -> Table:
        """The table that a member comes from."""
        ends = np.cumsum([columns.members for columns in self.columns])
        return self.tables[int(np.searchsorted(ends, member, side="right"))]

    def scattered(self, number: int, /) -> tuple[int, ...]:
        """Places of the tables in which the rows of a part are elsewhere than in its partner, or in another order."""
        part = self.tables[0].part(number)
        self._check_columns(part, self.columns[0])
        return tuple(place for place in range(1, len(self.tables)) if not self._lines_up(part, number, place))

    def _lines_up(self, part: Place, number: int, place: int) -> bool:
        partner = self.partner(number, place)
        if partner is None:
            return False
        self._check_columns(partner, self.columns[place])
        return self._same_ids(part, partner)

    def _beside(self, number: int, place: int, rows: int) -> Iterator[NDArray]:
        part, columns, start = self.tables[place].part(number), self.columns[place], 0
        for batch in batches(part, columns.names, rows):
            with readable(Path(part.path)):
                yield values_of(batch, columns, start=start)
            start += len(batch)

    def _gathered(self, number: int, place: int, rows: int) -> Iterator[NDArray]:
        table, columns, name = self.tables[place], self.columns[place], str(self.id_column)
        room = min(GATHERED, IN_ALL // (len(self.tables) - 1)) // (
            columns.members * columns.classes * np.dtype(columns.dtype).itemsize
        )
        block = rows * max(1, room // rows)
        part, begin = self.tables[0].part(number), 0
        for batch in batches(part, [name], block):
            with readable(Path(part.path)):
                ids = _ids_of(batch[name], name, begin)
            values = gather(table, columns, ids, name)
            for start in range(0, max(1, len(ids)), rows):
                yield values[:, start : start + rows]
            begin += len(ids)

    def _same_ids(self, part: Place, partner: Place) -> bool:
        name = str(self.id_column)
        pairs: Iterable[tuple[Any, Any]] = zip_longest(
            batches(part, [name], ID_ROWS), batches(partner, [name], ID_ROWS)
        )
        return all(one is not None and other is not None and one[name].equals(other[name]) for one, other in pairs)

    def _check_rows(self, part: Place, batch: Any, others: Iterable[NDArray | None]) -> None:
        """A damaged file may hold the ids of the part, and more or fewer predictions."""
        rows = 0 if batch is None else len(batch)
        for table, values in zip(self.tables[1:], others, strict=True):
            found = 0 if values is None else values.shape[1]
            if found != rows:
                raise ValueError(
                    f"{table}: holds {found} predictions for {rows} rows of {part}; one of both is damaged."
                )

    def _check_columns(self, part: Place, expected: MemberColumns) -> None:
        found = columns_in(part, logits=self.logits, id_column=self.id_column)
        if found != expected:
            raise ValueError(
                f"{part}: holds {_described(found)}; the first part of its table holds {_described(expected)}."
            )


def _ids_of(column: Any, name: str, start: int) -> Any:
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy()))
        raise UnsuitableError(f"column {name!r} has no id in row {row}; every row needs one.")
    return column.combine_chunks()


def _described(columns: MemberColumns) -> str:
    return f"{columns.members} members of {columns.classes} classes, {columns.dtype}, in {', '.join(columns.names)}"
