"""Tables of member predictions: folders of Parquet files, on this machine or in an object store, cut into parts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

import pyarrow.parquet as pq

from credalens.checks.options import count_text
from credalens.storage.arrow_path import ArrowPath, FileState, arrow_path, check_utf8
from credalens.storage.formats.files import UnsuitableError, check_unfolded, readable
from credalens.storage.formats.parquet import MemberColumns, RowReader, member_columns, open_parquet
from credalens.storage.predictions import check_predictions, choose_predictions

Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
PARQUET: Final = ".parquet"
PART_BYTES: Final = 1 << 26  # of predictions, from which on row groups of a single file are a part of their own


@dataclass(frozen=True)
class ParquetTable:
    """The predictions of one model, or of all members: a folder of Parquet files, or one file.

    :ivar source: what was asked for, the folder or the file.
    """

    source: ArrowPath
    folder: ArrowPath
    files: tuple[FileState, ...]

    def __str__(self) -> str:
        return str(self.source)

    def path(self, file: int, /) -> ArrowPath:
        """The path of a file."""
        return self.folder / self.files[file].name


@dataclass(frozen=True)
class Part:
    """A unit of work, scored into a file of its own: a file of a table, or some row groups of its only file.

    :ivar file: the number of the file in its table.
    :ivar stop: the row behind the last; None for all that the file has.
    """

    name: str
    file: int
    start: int = 0
    stop: int | None = None


def open_tables(sources: Sources, filesystem: Any = None, /) -> tuple[ParquetTable, ...]:
    """Find the files of each table: all Parquet files below a folder, or one file.

    Names that begin with a dot or an underscore are not data.
    """
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not paths:
        raise ValueError("name at least one folder of predictions.")
    return tuple(_open_table(arrow_path(path, filesystem)) for path in paths)


def _open_table(path: ArrowPath) -> ParquetTable:
    if path.is_file():
        if not path.name.lower().endswith(PARQUET):
            raise ValueError(
                f"{path}: must be a folder of Parquet files, or one file that ends in .parquet. Arrays of several models are "
                "scored as one file, without Ray: numpy.stack makes them (members, rows, classes)."
            )
        return ParquetTable(path, path.parent, (path.state(),))
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such folder.")
    parquet = (file for file in path.files() if file.name.lower().endswith(PARQUET))
    files = tuple(file for file in parquet if not any(step.startswith((".", "_")) for step in file.name.split("/")))
    if not files:
        raise ValueError(f"{path}: holds no Parquet files; a table is a folder of files that end in .parquet.")
    for file in files:
        check_utf8(f"{path}/{file.name}")
    return ParquetTable(path, path, files)


def parts_of(table: ParquetTable, columns: MemberColumns, /) -> tuple[Part, ...]:
    """A part for each file; a large file that is the only one is cut into row groups, so that many can work on it."""
    if len(table.files) > 1:
        return tuple(Part(file.name, number) for number, file in enumerate(table.files))
    name, cuts = table.files[0].name, [0]
    footer, _ = _read_footer(table.path(0))
    for end in accumulate(footer.row_group(group).num_rows for group in range(footer.num_row_groups)):
        enough = (end - cuts[-1]) * columns.row_bytes >= PART_BYTES or end == footer.num_rows
        if enough and end > cuts[-1]:
            cuts.append(end)
    if len(cuts) <= 2:
        return (Part(name, 0),)
    stem = name[: -len(PARQUET)]
    return tuple(Part(f"{stem}-{n:05d}{PARQUET}", 0, *rows) for n, rows in enumerate(pairwise(cuts)))


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
    """From the first file whose footer can be read; what is wrong with another is told when it is scored."""
    problem: ValueError | None = None
    for file in range(len(table.files)):
        try:
            _, schema = _read_footer(table.path(file))
        except ValueError as error:
            problem = problem or error
            continue
        return _columns_in(schema, table.path(file), logits, id_column)
    raise ValueError(
        f"{table}: nothing can be read of its {count_text(len(table.files), 'part')}; the first: {problem}"
    )


def columns_of_file(
    path: ArrowPath, /, *, logits: bool, id_column: str | None, max_bytes: int | None
) -> tuple[MemberColumns, int]:
    """The columns that hold members, and may unfold to ``max_bytes``, by the rules of ``open_predictions``; and its rows."""
    footer, schema = _read_footer(path)
    columns = _columns_in(schema, path, logits, id_column)
    with readable(path):
        check_unfolded(footer.num_rows * columns.row_bytes, path.state().size, max_bytes)
    return columns, footer.num_rows


def _read_footer(path: ArrowPath) -> tuple[Any, Any]:
    with readable(path), path.open() as file:
        footer = pq.read_metadata(file)
        return footer, footer.schema.to_arrow_schema()


def _columns_in(schema: Any, path: ArrowPath, logits: bool, id_column: str | None) -> MemberColumns:
    with readable(path):
        candidates = member_columns(schema)
        columns = candidates[choose_predictions(candidates, logits=logits)]
        if id_column is not None and id_column not in schema.names:
            raise UnsuitableError(f"has no column {id_column!r} of row ids; it has {', '.join(schema.names)}.")
    what = f"{path}: {', '.join(columns.names)}"
    check_predictions((columns.members, 1, columns.classes), columns.dtype, what, problem=columns.problem)
    return columns


def row_batches(
    path: ArrowPath, columns: Iterable[str], rows: int, start: int = 0, stop: int | None = None, /
) -> Iterator[Any]:
    """Columns of a file as Arrow tables of ``rows`` rows; the last may have fewer, no rows at all yield one empty table."""
    with readable(path), path.open() as source:
        file = open_parquet(source, local=path.is_local)
        reader = RowReader(lambda: file, list(dict.fromkeys(columns)), rows)
        end = file.metadata.num_rows if stop is None else stop
        for begin in range(start, max(start + 1, end), rows):
            yield reader.read(begin, min(begin + rows, end))
