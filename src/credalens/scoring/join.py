"""Tables that describe the same rows, one or more members each, joined by row id; the parts of the first are the work."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from credalens.checks.options import count_text
from credalens.scoring.tables import ParquetTable, Part, columns_of_file, row_batches
from credalens.storage.arrow_path import ArrowPath
from credalens.storage.formats.files import UnsuitableError, readable
from credalens.storage.formats.parquet import MemberColumns, refuse_nulls
from credalens.storage.predictions import checked_labels
from credalens.storage.source import Chunk, rows_at_a_time

LOOKED_UP, LOOKED_UP_IN_ALL = 256 * 2**20, 2**30  # bytes of one table, and of all, that are looked up at a time


@final
@dataclass(frozen=True)
class TableInput:
    """One table, or several that describe the same rows; the input of a scoring job, which can be sent to workers."""

    tables: tuple[ParquetTable, ...]
    columns: tuple[MemberColumns, ...]
    parts: tuple[Part, ...]
    id_column: str | None
    logits: bool
    max_bytes: int | None = None

    def __str__(self) -> str:
        return str(self.tables[0])

    def path(self, part: int, /) -> ArrowPath:
        """The file of the first table."""
        return self.tables[0].path(self.parts[part].file)

    def state(self, part: int, looked_up: Container[int], /) -> Any:
        """The states of all files that a part is made from: its own, and of other tables its partner or all."""
        own = self.parts[part]
        others = []
        for number, table in enumerate(self.tables[1:], start=1):
            alone = self.has_partners(number) and number not in looked_up
            others.append(asdict(table.files[own.file]) if alone else [asdict(file) for file in table.files])
        return [asdict(self.tables[0].files[own.file]), own.start, own.stop, *others]

    def has_partners(self, table: int, /) -> bool:
        """Tell whether a table has as many files as the first, each of which may hold the same rows as its partner."""
        return len(self.tables[table].files) == len(self.tables[0].files)

    def check_file(self, table: int, file: int, /) -> int:
        """Refuse a file with other columns than its table has; returns how many rows it has."""
        path, expected = self.tables[table].path(file), self.columns[table]
        columns, rows = columns_of_file(path, logits=self.logits, id_column=self.id_column, max_bytes=self.max_bytes)
        if columns != expected:
            raise ValueError(
                f"{path}: holds {_described(columns)}; the first part of its table holds {_described(expected)}."
            )
        return rows


def _described(columns: MemberColumns) -> str:
    label = "" if columns.label is None else f", and labels in {columns.label}"
    members = count_text(columns.members, "member")
    return f"{members} of {columns.classes} classes, {columns.dtype}, in {', '.join(columns.names)}{label}"


@final
class PartRows:
    """The rows of a part with the members of all tables: a ``RowSource``.

    Files of two tables are partners when both tables have as many: the first with the first, in the order of their names.
    As long as the ids of partners are equal both are read side by side; from there on rows are looked up by their ids.

    :ivar looked_up: numbers of the tables that were looked through, complete after the last chunk.
    """

    def __init__(self, tables: TableInput, part: int, /) -> None:
        self._input, self._part, self._path = tables, tables.parts[part], tables.path(part)
        self.logits, self.dtype = tables.logits, tables.columns[0].dtype
        self.looked_up: list[int] = []

    def __str__(self) -> str:
        return str(self._path)

    def row_name(self, chunk: Chunk, row: int, member: int, /) -> str:
        """Their numbers, the row's id if there are ids, and the member's table where there are several."""
        row_id = "" if chunk.ids is None else f" (id {chunk.ids[row - chunk.start]})"
        ends = np.cumsum([columns.members for columns in self._input.columns])
        table = self._input.tables[int(np.searchsorted(ends, member, side="right"))]
        return f"row {row}{row_id}, member {member}{f' (of {table})' if len(ends) > 1 else ''}"

    def chunks(self, rows: int | None = None, /) -> Iterator[Chunk]:
        """All rows in order with the members of all tables."""
        columns, id_column, start = self._input.columns[0], self._input.id_column, self._part.start
        rows = rows_at_a_time(sum(table.members for table in self._input.columns), columns.classes, rows)
        own_rows = self._input.check_file(0, self._part.file)
        names = [*columns.names, *(name for name in (id_column, columns.label) if name is not None)]
        others = (self._members_of(table, rows, own_rows) for table in range(1, len(self._input.tables)))
        for batch, *rest in zip(self._batches(self._path, names, rows), *others, strict=True):
            with readable(self._path):
                values = columns.values(batch, start)
                ids = None if id_column is None else _ids_of(batch, id_column, start)
                labels = None
                if (label := columns.label) is not None:
                    message = f"column {label!r} has no label in row {{row}}; every row needs one, or none."
                    refuse_nulls(batch[label], start, message)
                    labels = checked_labels(batch[label].to_numpy(), columns.classes, start=start)
            yield Chunk(start, np.concatenate([values, *rest]) if rest else values, labels, ids)
            start += len(batch)

    def _batches(self, path: ArrowPath, names: Sequence[str], rows: int) -> Iterator[Any]:
        return row_batches(path, names, rows, self._part.start, self._part.stop)

    def _members_of(self, number: int, rows: int, own_rows: int) -> Iterator[NDArray]:
        table, columns, id_column = self._input.tables[number], self._input.columns[number], str(self._input.id_column)
        start = self._part.start
        if self._input.has_partners(number) and self._input.check_file(number, self._part.file) == own_rows:
            partner = table.path(self._part.file)
            own_ids = self._batches(self._path, [id_column], rows)
            for own, batch in zip(own_ids, self._batches(partner, [id_column, *columns.names], rows), strict=True):
                if not own[id_column].equals(batch[id_column]):
                    break
                with readable(partner):
                    yield columns.values(batch, start)
                start += len(batch)
            else:
                return
        self.looked_up.append(number)
        most = min(LOOKED_UP, LOOKED_UP_IN_ALL // (len(self._input.tables) - 1)) // columns.row_bytes
        for batch in row_batches(self._path, [id_column], rows * max(1, most // rows), start, self._part.stop):
            with readable(self._path):
                ids = _ids_of(batch, id_column, start)
            values = lookup(table, columns, ids, id_column)
            for first in range(0, max(1, len(ids)), rows):
                yield values[:, first : first + rows]
            start += len(ids)


def _ids_of(batch: Any, name: str, start: int) -> Any:
    refuse_nulls(batch[name], start, f"column {name!r} has no id in row {{row}}; every row needs one.")
    return batch[name].combine_chunks()


# Arrow would read two million rows of four files ahead, of which a worker keeps few.
LITTLE_AHEAD: Final[dict[str, Any]] = {"batch_size": 1 << 14, "batch_readahead": 1, "fragment_readahead": 1}
VERIFIED: Final = ds.ParquetFragmentScanOptions(page_checksum_verification=True)


def lookup(table: ParquetTable, columns: MemberColumns, ids: Any, id_column: str, /) -> NDArray:
    """The members' values (members, rows, classes) of the rows with these ids, in their order.

    Only row groups whose statistics allow one of the ids are read: where a table is sorted or clustered by id that is
    about as much as is needed, and where ids are scattered it is the whole table.
    """
    if not len(ids):
        return np.empty((columns.members, 0, columns.classes), columns.dtype)
    ids = _plain(ids)
    dataset, unreadable = _dataset(table)
    kind = dataset.schema.field(id_column).type
    with readable(table.folder):
        name, ends = ds.field(id_column), pc.min_max(ids)
        try:  # numbers of any width are compared, and text of any; a number and a text are not
            wanted = (name >= ends["min"]) & (name <= ends["max"]) & name.isin(ids)
            rows = dataset.to_table(columns=[id_column, *columns.names], filter=wanted, **LITTLE_AHEAD)
            found = rows[id_column].cast(ids.type).combine_chunks()
        except pa.ArrowNotImplementedError as error:
            if kind == ids.type:
                raise
            raise UnsuitableError(
                f"has {kind} in {id_column!r}, the first table has {ids.type}; give the ids of all tables one type."
            ) from error
        positions = pc.index_in(ids, value_set=found)
        if positions.null_count:
            damaged = ""
            if unreadable:
                damaged = f" {len(unreadable)} of its files cannot be read, the first is {unreadable[0]}."
            raise UnsuitableError(
                f"lacks {positions.null_count:,} of {len(ids):,} rows that the first table has, such as the one with id "
                f"{ids.filter(positions.is_null())[0]}.{damaged} All tables need the same row ids."
            )
        if len(twice := _repeated(found)):
            raise UnsuitableError(
                f"has {count_text(len(twice), 'id')} more than once in {id_column!r}, such as {twice[0]}; an id names one row."
            )
        for column in columns.names:
            if len(gaps := found.filter(rows[column].is_null().combine_chunks())):
                raise UnsuitableError(
                    f"column {column!r} has no value for id {gaps[0]}; drop or fill missing rows first."
                )
        return columns.values(rows.take(positions))


@lru_cache(maxsize=8)
def _dataset(table: ParquetTable) -> tuple[Any, tuple[str, ...]]:
    """The files as one data set whose footers are read once for each process, and the files that have none."""
    form = ds.ParquetFileFormat(default_fragment_scan_options=VERIFIED)
    fragments, unreadable = [], []
    for number, file in enumerate(table.files):
        fragment = form.make_fragment(table.path(number).path, table.folder.filesystem)
        try:
            fragment.ensure_complete_metadata()
        except (pa.ArrowInvalid, OSError):
            unreadable.append(file.name)
            continue
        fragments.append(fragment)
    if not fragments:
        raise ValueError(f"{table}: nothing can be read of its {count_text(len(table.files), 'file')}.")
    return ds.FileSystemDataset(fragments, fragments[0].physical_schema, form), tuple(unreadable)


JOINS: Final = ("exact", "first")
REMEDY: Final = 'Give every table the same ids, each once, or allow it with --join first (join="first").'


def compare_ids(tables: Sequence[ParquetTable], id_column: str | None, join: str, /) -> tuple[int, dict[str, int]]:
    """Count rows of the first table that repeat an earlier id, and rows of each other table that the first does not have.

    An error where ``join`` is "exact" and there are some.
    Reads the ids of the first table, which take 8 bytes per row where they are numbers, and of others only the number of
    their rows, unless there are more of these. What a damaged file holds is unknown, and told when it is scored.
    """
    if len(tables) == 1:
        return 0, {}
    ids, complete = _read_ids(tables[0], str(id_column))
    repeated = len(ids) - ids.null_count - len(ids.drop_null().unique())
    if repeated and join == "exact":
        raise ValueError(
            f"{tables[0]}: {count_text(repeated, 'row')} with the id of an earlier row, such as "
            f"{_repeated(ids.drop_null())[0]}. {REMEDY}"
        )
    left_out: dict[str, int] = {}
    for table in tables[1:] if complete else ():
        extra = _unmatched(table, str(id_column), ids, len(ids) - repeated)
        if len(extra) and join == "exact":
            raise ValueError(
                f"{table}: has {count_text(len(extra), 'row')} that {tables[0]} lacks, such as the one with id {extra[0]}. "
                f"{REMEDY}"
            )
        if len(extra):
            left_out[str(table)] = len(extra)
    return repeated, left_out


def _unmatched(table: ParquetTable, id_column: str, ids: Any, rows: int) -> Any:
    """The ids that are not among ``ids``: none where there are no more rows, since every one of ``ids`` must be found."""
    if _dataset(table)[0].count_rows() <= rows:
        return ids[:0]
    try:
        others = _read_ids(table, id_column)[0].cast(ids.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # ids of two types, which the join refuses
        return ids[:0]
    return others.filter(pc.invert(pc.is_in(others, value_set=ids)))


def _read_ids(table: ParquetTable, id_column: str) -> tuple[Any, bool]:
    """The ids of all files that can be read, and whether these are all."""
    dataset, unreadable = _dataset(table)
    columns, complete = [], not unreadable
    for fragment in dataset.get_fragments():
        try:
            columns.append(_plain(fragment.to_table(columns=[id_column])[id_column].combine_chunks()))
        except (pa.ArrowInvalid, OSError):
            complete = False
    return (pa.concat_arrays(columns) if columns else pa.array([], pa.int64())), complete


def _plain(ids: Any) -> Any:
    return ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids


def _repeated(ids: Any) -> Any:
    counts = pc.value_counts(ids)
    return counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
