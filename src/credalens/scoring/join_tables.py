"""Several tables that describe the same rows, one or more members each, joined by row id."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.counted import count_text
from credalens.scoring.inputs import Chunk
from credalens.scoring.parquet_folders import ParquetTable, columns_of_part, readable_part, row_batches
from credalens.scoring.rows_by_id import gather
from credalens.storage.arrow_path import ArrowPath
from credalens.storage.formats.parquet import MemberColumns, refuse_nulls
from credalens.storage.labels import checked_labels

GATHERED, GATHERED_IN_ALL = 256 * 2**20, 2**30  # bytes of one table, and of all, that are gathered at a time
ID_ROWS = 1 << 18


@final
@dataclass(frozen=True)
class TableInput:
    """One table, or several that describe the same rows; the parts of the first are the units of work.

    Parts of two tables are partners when both tables have as many files: the first with the first, in the order of
    their names. Where the ids of partners are equal both are read side by side. Elsewhere the rows of the part are
    scattered, and are gathered by their ids.
    """

    tables: tuple[ParquetTable, ...]
    columns: tuple[MemberColumns, ...]
    id_column: str | None
    logits: bool
    max_bytes: int | None = None

    def __str__(self) -> str:
        return str(self.tables[0])

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.tables[0].parts)

    def part_name(self, part: int, /) -> str:
        """The relative name of the input's part."""
        return self.tables[0].parts[part].name

    def path(self, part: int, /) -> str:
        """The file of the first table."""
        return str(self.tables[0].path(part))

    def member_name(self, member: int, /) -> str:
        """Its number, and its table where there are several."""
        ends = np.cumsum([columns.members for columns in self.columns])
        table = self.tables[int(np.searchsorted(ends, member, side="right"))]
        return f"member {member} (of {table})" if len(self.tables) > 1 else f"member {member}"

    def state(self, part: int, tables_to_gather: Container[int], /) -> Any:
        """The part itself, and of each other table its partner, or all files where the rows of the part are scattered."""
        partners = [self._files_behind(part, table, tables_to_gather) for table in range(1, len(self.tables))]
        return [asdict(self.tables[0].parts[part]), *partners]

    def _files_behind(self, part: int, table: int, tables_to_gather: Container[int]) -> Any:
        files = self.tables[table].parts
        if table in tables_to_gather or self._partner(part, table) is None:
            return [asdict(file) for file in files]
        return asdict(files[part])

    def tables_to_gather(self, part: int, /) -> tuple[int, ...]:
        """Numbers of the tables in which the rows of a part are elsewhere than in its partner, or in another order."""
        path = self.tables[0].path(part)
        self._check_columns(path, self.columns[0])
        return tuple(table for table in range(1, len(self.tables)) if not self._lines_up(path, part, table))

    def _lines_up(self, path: ArrowPath, part: int, table: int) -> bool:
        partner = self._partner(part, table)
        if partner is None:
            return False
        self._check_columns(partner, self.columns[table])
        return self._same_ids(path, partner)

    def _partner(self, part: int, table: int) -> ArrowPath | None:
        """The file of another table that may hold the same rows as a part of the first."""
        partners = self.tables[table]
        return partners.path(part) if len(partners.parts) == self.parts else None

    def chunks(self, part: int, rows: int, tables_to_gather: Container[int], /) -> Iterator[Chunk]:
        """The part with the members of all tables, those of ``tables_to_gather`` by id."""
        path, columns = self.tables[0].path(part), self.columns[0]
        names = [*columns.names, *(name for name in (self.id_column, columns.label) if name is not None)]
        others = [
            self._gathered(part, table, rows) if table in tables_to_gather else self._side_by_side(part, table, rows)
            for table in range(1, len(self.tables))
        ]
        start = 0
        for batch, *rest in zip_longest(row_batches(path, names, rows), *others):
            self._check_rows(path, batch, rest)
            with readable_part(path):
                values = columns.values(batch, start=start)
                ids = None if self.id_column is None else _ids_of(batch, self.id_column, start)
                labels = None if columns.label is None else _labels_of(batch, columns, start)
            yield Chunk(start, ids, values if not rest else np.concatenate([values, *rest]), labels)
            start += len(batch)

    def _side_by_side(self, part: int, table: int, rows: int) -> Iterator[NDArray]:
        path, columns, start = self.tables[table].path(part), self.columns[table], 0
        for batch in row_batches(path, columns.names, rows):
            with readable_part(path):
                yield columns.values(batch, start=start)
            start += len(batch)

    def _gathered(self, part: int, table: int, rows: int) -> Iterator[NDArray]:
        columns, name, path = self.columns[table], str(self.id_column), self.tables[0].path(part)
        most = min(GATHERED, GATHERED_IN_ALL // (len(self.tables) - 1)) // columns.row_bytes
        first = 0
        for batch in row_batches(path, [name], rows * max(1, most // rows)):
            with readable_part(path):
                ids = _ids_of(batch, name, first)
            values = gather(self.tables[table], columns, ids, name)
            for start in range(0, max(1, len(ids)), rows):
                yield values[:, start : start + rows]
            first += len(ids)

    def _same_ids(self, path: ArrowPath, partner: ArrowPath) -> bool:
        name = str(self.id_column)
        pairs: Iterable[tuple[Any, Any]] = zip_longest(
            row_batches(path, [name], ID_ROWS), row_batches(partner, [name], ID_ROWS)
        )
        return all(None not in pair and pair[0][name].equals(pair[1][name]) for pair in pairs)

    def _check_rows(self, path: ArrowPath, batch: Any, others: Iterable[NDArray | None]) -> None:
        """A damaged file may hold the ids of the part, and more or fewer predictions."""
        rows = 0 if batch is None else len(batch)
        for table, values in zip(self.tables[1:], others, strict=True):
            predictions = 0 if values is None else values.shape[1]
            if predictions != rows:
                raise ValueError(
                    f"{table}: holds {count_text(predictions, 'prediction')} for {count_text(rows, 'row')} of {path}; one of "
                    "the two is damaged."
                )

    def _check_columns(self, path: ArrowPath, expected: MemberColumns) -> None:
        columns = columns_of_part(path, logits=self.logits, id_column=self.id_column, max_bytes=self.max_bytes)
        if columns != expected:
            raise ValueError(
                f"{path}: holds {_described(columns)}; the first part of its table holds {_described(expected)}."
            )


def _ids_of(batch: Any, name: str, start: int) -> Any:
    refuse_nulls(batch[name], start, f"column {name!r} has no id in row {{row}}; every row needs one.")
    return batch[name].combine_chunks()


def _labels_of(batch: Any, columns: MemberColumns, start: int) -> NDArray:
    name = str(columns.label)
    refuse_nulls(batch[name], start, f"column {name!r} has no label in row {{row}}; every row needs one, or none.")
    return checked_labels(batch[name].to_numpy(), columns.classes, start=start)


def _described(columns: MemberColumns) -> str:
    label = "" if columns.label is None else f", and labels in {columns.label}"
    members = count_text(columns.members, "member")
    return f"{members} of {columns.classes} classes, {columns.dtype}, in {', '.join(columns.names)}{label}"
