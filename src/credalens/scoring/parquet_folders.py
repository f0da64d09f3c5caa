"""Tables of member predictions: folders of Parquet files, on this machine or in an object store.

Joined tables must describe the same rows, each once, which is looked at before anything is scored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from credalens.checks.options import count_text
from credalens.storage.arrow_path import ArrowPath, FileState, arrow_path, check_utf8
from credalens.storage.formats.files import UnsuitableError, check_unfolded, readable
from credalens.storage.formats.parquet import MemberColumns, RowReader, member_columns, open_parquet
from credalens.storage.reading import check_predictions, choose_predictions

PARQUET = ".parquet"


@dataclass(frozen=True)
class ParquetTable:
    """The predictions of one model, or of all members: a folder of Parquet files, its parts."""

    source: ArrowPath  # what was asked for: the folder, or the only file
    folder: ArrowPath
    parts: tuple[FileState, ...]

    def __str__(self) -> str:
        return str(self.source)

    def path(self, part: int, /) -> ArrowPath:
        """The path of a part."""
        return self.folder / self.parts[part].name


def open_table(source: str | os.PathLike[str], /, filesystem: Any = None) -> ParquetTable:
    """Find the parts of a table: all Parquet files below a folder, or one file.

    Names that begin with a dot or an underscore are not data.
    """
    path = arrow_path(source, filesystem)
    if path.is_file():
        if not path.name.lower().endswith(PARQUET):
            raise ValueError(
                f"{path}: must be a folder of Parquet files, or one file that ends in .parquet. Arrays of several models are "
                "scored as one file, without Ray: numpy.stack makes them (members, rows, classes)."
            )
        return ParquetTable(path, path.parent, (path.state(),))
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such folder.")
    parts = tuple(file for file in path.files() if _is_data(file.name))
    if not parts:
        raise ValueError(f"{path}: holds no Parquet files; a table is a folder of files that end in .parquet.")
    for part in parts:
        check_utf8(f"{path}/{part.name}")
    return ParquetTable(path, path, parts)


def _is_data(name: str) -> bool:
    hidden = any(step.startswith((".", "_")) for step in name.split("/"))
    return name.lower().endswith(PARQUET) and not hidden


def readable_part(path: ArrowPath, /) -> Any:
    """Name the file in whatever its reader says; see ``readable``."""
    return readable(Path(path.path))


def columns_of_all(
    tables: Sequence[ParquetTable], /, *, logits: bool, id_column: str | None
) -> tuple[MemberColumns, ...]:
    """The columns that hold the members of each table; all tables must describe the same classes."""
    columns = tuple(_columns_of_table(table, logits, id_column) for table in tables)
    first = columns[0]
    for table, other in zip(tables, columns, strict=True):
        if (other.classes, other.dtype) != (first.classes, first.dtype):
            raise ValueError(
                f"{table} holds {other.classes} classes in {other.dtype}, {tables[0]} {first.classes} in {first.dtype}; "
                "all tables must describe the same classes in the same precision."
            )
    return columns


def _columns_of_table(table: ParquetTable, logits: bool, id_column: str | None) -> MemberColumns:
    """From the first part whose footer can be read; what is wrong with another is told when it is scored."""
    problem: ValueError | None = None
    for part in range(len(table.parts)):
        try:
            schema = _read_schema(table.path(part))
        except ValueError as error:
            problem = problem or error
            continue
        return _columns_in(schema, table.path(part), logits, id_column)
    raise ValueError(
        f"{table}: nothing can be read of its {count_text(len(table.parts), 'part')}; the first: {problem}"
    )


def columns_of_part(path: ArrowPath, /, *, logits: bool, id_column: str | None, max_bytes: int | None) -> MemberColumns:
    """The columns that hold members, and may unfold to ``max_bytes``, by the rules of ``open_predictions``."""
    with readable_part(path), path.open() as file:
        footer, size = pq.read_metadata(file), file.size()
        schema = footer.schema.to_arrow_schema()
    columns = _columns_in(schema, path, logits, id_column)
    with readable_part(path):
        check_unfolded(footer.num_rows * columns.row_bytes, size, max_bytes)
    return columns


def _read_schema(path: ArrowPath) -> Any:
    with readable_part(path), path.open() as file:
        return pq.read_schema(file)


def _columns_in(schema: Any, path: ArrowPath, logits: bool, id_column: str | None) -> MemberColumns:
    with readable_part(path):
        candidates = member_columns(schema)
        columns = candidates[choose_predictions(candidates, logits=logits)]
        if id_column is not None and id_column not in schema.names:
            raise UnsuitableError(f"has no column {id_column!r} of row ids; it has {', '.join(schema.names)}.")
    what = f"{path}: {', '.join(columns.names)}"
    check_predictions((columns.members, 1, columns.classes), columns.dtype, what, problem=columns.problem)
    return columns


def row_batches(path: ArrowPath, columns: Iterable[str], rows: int, /) -> Iterator[Any]:
    """Columns of a file as Arrow tables of ``rows`` rows; the last may have fewer, an empty file yields one empty table."""
    with readable_part(path), path.open() as source:
        file = open_parquet(source, local=path.is_local)
        reader, total = RowReader(lambda: file, list(dict.fromkeys(columns)), rows), file.metadata.num_rows
        for start in range(0, max(1, total), rows):
            yield reader.read(start, min(start + rows, total))


JOINS: Final = ("exact", "first")
ID_ROWS: Final = 1 << 18
REMEDY: Final = 'Give every table the same ids, each once, or allow it with --join first (join="first").'


@dataclass(frozen=True)
class IdDifferences:
    """Rows of the first table that repeat an earlier id, and rows of each other table that the first does not have."""

    repeated: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


def compare_ids(tables: Sequence[ParquetTable], id_column: str | None, join: str, /) -> IdDifferences:
    """Count what differs; an error where ``join`` is "exact" and something does.

    Reads the ids of the first table, which take 8 bytes per row where they are numbers, and of others only the number of
    their rows, unless there are more of these. What a damaged file holds is unknown, and told when it is scored.
    """
    if len(tables) == 1:
        return IdDifferences()
    ids, complete = _read_ids(tables[0], str(id_column))
    counts = pc.value_counts(ids)
    repeated = len(ids) - ids.null_count - len(counts) + (ids.null_count > 0)
    if repeated and join == "exact":
        example = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").drop_null()[0]
        raise ValueError(
            f"{tables[0]}: {count_text(repeated, 'row')} with the id of an earlier row, such as {example}. {REMEDY}"
        )
    left_out = {}
    for table in tables[1:] if complete else ():
        extra = _unmatched(table, str(id_column), ids, len(ids) - repeated)
        if len(extra) and join == "exact":
            raise ValueError(
                f"{table}: has {count_text(len(extra), 'row')} that {tables[0]} lacks, such as the one with id {extra[0]}. "
                f"{REMEDY}"
            )
        if len(extra):
            left_out[str(table)] = len(extra)
    return IdDifferences(repeated, left_out)


def _unmatched(table: ParquetTable, id_column: str, ids: Any, rows: int) -> Any:
    """The ids that are not among ``ids``: none where there are no more rows, since every one of ``ids`` must be found."""
    if sum(_rows(table, part) for part in range(len(table.parts))) <= rows:
        return ids[:0]
    try:
        others = _read_ids(table, id_column)[0].cast(ids.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # ids of two types, which the join refuses
        return ids[:0]
    return others.filter(pc.invert(pc.is_in(others, value_set=ids)))


def _read_ids(table: ParquetTable, id_column: str) -> tuple[Any, bool]:
    """The ids of all files that can be read, and whether these are all."""
    columns, complete = [], True
    for part in range(len(table.parts)):
        try:
            columns += [batch[id_column] for batch in row_batches(table.path(part), [id_column], ID_ROWS)]
        except ValueError:
            complete = False
    arrays = [_plain(chunk) for column in columns for chunk in column.chunks]
    return (pa.concat_arrays(arrays) if arrays else pa.array([], pa.int64())), complete


def _plain(chunk: Any) -> Any:
    return chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk


def _rows(table: ParquetTable, part: int) -> int:
    try:
        with readable_part(table.path(part)), table.path(part).open() as file:
            return int(pq.read_metadata(file).num_rows)
    except ValueError:
        return 0
