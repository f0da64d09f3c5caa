"""Several tables that describe the same rows, one or more members each, joined by row id."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.scoring.inputs import Chunk
from credalens.scoring.parquet_folders import ParquetTable, columns_of_part, readable_part, row_batches
from credalens.storage.arrow_path import ArrowPath
from credalens.storage.formats.files import UnsuitableError
from credalens.storage.formats.parquet import MemberColumns, refuse_nulls
from credalens.storage.reading import checked_labels

# Arrow would read two million rows of four files ahead, of which a worker keeps few.
LITTLE_AHEAD: Final[dict[str, Any]] = {"batch_size": 1 << 14, "batch_readahead": 1, "fragment_readahead": 1}
VERIFIED: Final = ds.ParquetFragmentScanOptions(page_checksum_verification=True)


def gather(table: ParquetTable, columns: MemberColumns, ids: Any, id_column: str, /) -> NDArray:
    """The members' values (members, rows, classes) of the rows with these ids, in their order.

    Only row groups whose statistics allow one of the ids are read: where a table is sorted or clustered by id that is
    about as much as is needed, and where ids are scattered it is the whole table.
    """
    if not len(ids):
        return np.empty((columns.members, 0, columns.classes), columns.dtype)
    ids = ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids
    dataset, unreadable = _dataset(table)
    with readable_part(table.folder), _of_one_type(dataset.schema.field(id_column).type, ids.type, id_column):
        rows = _rows(dataset, [id_column, *columns.names], ids, id_column)
        positions = pc.index_in(ids, value_set=rows[id_column].combine_chunks())
        _check_complete(ids, positions, unreadable)
        _check_once(rows[id_column], id_column)
        _check_filled(rows, columns, id_column)
        return columns.values(rows.take(positions))


@contextmanager
def _of_one_type(kind: Any, wanted: Any, id_column: str) -> Iterator[None]:
    """Numbers of any width are compared, and text of any; a number and a text are not."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        if kind == wanted:
            raise
        raise UnsuitableError(
            f"has {kind} in {id_column!r}, the first table has {wanted}; give the ids of all tables one type."
        ) from error


def _rows(dataset: Any, names: list[str], ids: Any, id_column: str) -> Any:
    field, ends = ds.field(id_column), pc.min_max(ids)
    wanted = (field >= ends["min"]) & (field <= ends["max"]) & field.isin(ids)
    rows = dataset.to_table(columns=names, filter=wanted, **LITTLE_AHEAD)
    return rows.set_column(0, id_column, rows[id_column].cast(ids.type))


@lru_cache(maxsize=8)
def _dataset(table: ParquetTable) -> tuple[Any, tuple[str, ...]]:
    """The files as one data set whose footers are read once for each process, and the files that have none."""
    form = ds.ParquetFileFormat(default_fragment_scan_options=VERIFIED)
    fragments, unreadable = [], []
    for number, part in enumerate(table.parts):
        fragment = form.make_fragment(table.path(number).path, table.folder.filesystem)
        try:
            fragment.ensure_complete_metadata()
        except (pa.ArrowInvalid, OSError):
            unreadable.append(part.name)
            continue
        fragments.append(fragment)
    if not fragments:
        raise ValueError(f"{table}: nothing can be read of its {count_text(len(table.parts), 'file')}.")
    return ds.FileSystemDataset(fragments, fragments[0].physical_schema, form), tuple(unreadable)


def _check_complete(ids: Any, positions: Any, unreadable: tuple[str, ...]) -> None:
    if not positions.null_count:
        return
    first = ids[int(np.argmax(positions.is_null().to_numpy(zero_copy_only=False)))]
    damaged = f" {len(unreadable)} of its files cannot be read, the first is {unreadable[0]}." if unreadable else ""
    raise UnsuitableError(
        f"lacks {positions.null_count:,} of {len(ids):,} rows that the first table has, such as the one with id {first}."
        f"{damaged} All tables need the same row ids."
    )


def _check_once(ids: Any, id_column: str) -> None:
    counts = pc.value_counts(ids.combine_chunks())
    twice = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise UnsuitableError(
            f"has {count_text(len(twice), 'id')} more than once in {id_column!r}, such as {twice[0]['values']}; an id names "
            "one row."
        )


def _check_filled(rows: Any, columns: MemberColumns, id_column: str) -> None:
    for name in columns.names:
        gaps = rows[id_column].filter(rows[name].is_null())
        if len(gaps):
            raise UnsuitableError(f"column {name!r} has no value for id {gaps[0]}; drop or fill missing rows first.")


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
