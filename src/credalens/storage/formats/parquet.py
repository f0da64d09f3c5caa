"""Parquet: member predictions, read by rows from fixed-size lists, and scored rows, written in row groups.

Pages that have a checksum, as those of ``write_predictions``, are compared with it. It covers the values, not the
footer, and files of other programs often have none.
How many bytes a file unfolds to is what its footer says; the sizes in front of single pages are left to Arrow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from credalens.storage.formats.arrays import STREAMED, Stored
from credalens.storage.formats.files import UnsuitableError, readable

SIDE_BY_SIDE: Final = "member_*"
SCORED: Final = {"probability", "lower", "upper", "set"}
LABEL_COLUMNS: Final = ("label", "labels")
FLOATS: Final = {"halffloat": "float16", "float": "float32", "double": "float64"}
VALUES_A_BATCH: Final = 1 << 18
VALUES_A_GROUP: Final = 1 << 23


@dataclass(frozen=True)
class MemberColumns:
    """The columns ``names`` that hold ``members`` distributions over ``classes`` classes for each row.

    :ivar problem: why they cannot be read, if they cannot.
    """

    names: tuple[str, ...]
    members: int
    classes: int
    dtype: str
    label: str | None = None
    problem: str = ""

    @property
    def row_bytes(self) -> int:
        """The bytes that the predictions of a row take in memory."""
        return self.members * self.classes * np.dtype(self.dtype).itemsize

    def values(self, table: Any, start: int = 0, /) -> NDArray:
        """The predictions (members, rows, classes) in a table whose first row is row ``start`` of the file."""
        columns = [_values(table[name], name, start) for name in self.names]
        if len(columns) == 1:
            rows = columns[0].reshape(len(table), self.members, self.classes)
            return np.ascontiguousarray(rows.transpose(1, 0, 2))
        return np.stack([column.reshape(len(table), self.classes) for column in columns])


def member_columns(schema: Any, /) -> dict[str, MemberColumns]:
    """All predictions in a schema by their name.

    They are a column of lists (members) of lists (classes), or columns ``member_0``, ``member_1``, ... of lists (classes),
    under the name ``member_*``. Where there is neither, each column of flat lists is the prediction of one member.
    Lists of variable size are never read: their ``problem`` says how to convert them.
    """
    if set(schema.names) >= SCORED:  # by an earlier version its labels are the predicted classes: all would be right
        raise UnsuitableError("holds scores, not predictions of members; name the file that they were made from.")
    lists = [field for field in schema if pa.types.is_fixed_size_list(field.type)]
    nested = [field for field in lists if pa.types.is_fixed_size_list(field.type.value_type)]
    numbered = [field for field in schema if re.fullmatch(r"member_\d+", field.name)]
    label = _label_column(schema)
    if not (nested or numbered):
        variable = [x for x in schema if _is_variable(x.type) and any(f": {kind}" in str(x.type) for kind in FLOATS)]
        return {field.name: _flat((field.name,), field.type, label) for field in lists or variable}
    columns = {}
    for field in nested:
        inner = field.type.value_type
        dtype = _dtype_name(inner.value_type)
        columns[field.name] = MemberColumns((field.name,), field.type.list_size, inner.list_size, dtype, label)
    return columns | ({SIDE_BY_SIDE: _side_by_side(numbered, label)} if numbered else {})


def _label_column(schema: Any) -> str | None:
    return next((name for name in LABEL_COLUMNS if name in schema.names), None)


def _side_by_side(fields: Sequence[Any], label: str | None) -> MemberColumns:
    names = tuple(sorted((field.name for field in fields), key=lambda name: int(name.removeprefix("member_"))))
    if names != tuple(f"member_{n}" for n in range(len(names))):
        expected = f"member_0 to member_{len(names) - 1}"
        raise UnsuitableError(f"its {len(names)} member columns must be {expected}; got {', '.join(names)}.")
    if len({field.type for field in fields}) > 1 or not pa.types.is_nested(fields[0].type):
        described = ", ".join(f"{field.name}: {field.type}" for field in fields)
        raise UnsuitableError(f"member columns must be fixed-size lists of one length and one type; got {described}.")
    return _flat(names, fields[0].type, label)


def _flat(names: tuple[str, ...], lists: Any, label: str | None) -> MemberColumns:
    if not pa.types.is_fixed_size_list(lists) or pa.types.is_nested(lists.value_type):
        return MemberColumns(names, len(names), 1, str(lists), label, _how_to_fix_sizes(lists))
    return MemberColumns(names, len(names), lists.list_size, _dtype_name(lists.value_type), label)


def _how_to_fix_sizes(lists: Any) -> str:
    """Advice on converting lists of which some have no fixed size; empty for other types."""
    levels, kind = [lists], lists
    while pa.types.is_fixed_size_list(kind) or _is_variable(kind):
        levels.append(kind := kind.value_type)
    if not any(map(_is_variable, levels)):
        return ""
    classes = "pa.list_(pa.float32(), CLASSES)"
    needed = f"pa.list_({classes}, MEMBERS)" if len(levels) > 2 else classes
    return (
        f"has lists of variable size ({lists}), as pandas writes them; Arrow's fixed-size lists are needed. With "
        f"import pyarrow as pa, column.cast({needed}) converts a column of a table; write it with pyarrow.parquet.write_table."
    )


def _is_variable(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _dtype_name(kind: Any) -> str:
    return FLOATS.get(str(kind), str(kind))


def open_parquet(source: Any, /, *, local: bool = True) -> pq.ParquetFile:
    """Open a file; a local one is read a little ahead only, where Arrow would fetch a whole row group before the first row."""
    ahead = {"pre_buffer": not local, "buffer_size": 1 << 20 if local else 0}
    return pq.ParquetFile(source, page_checksum_verification=True, **ahead)


def parquet_arrays(path: Path, /) -> dict[str, Stored]:
    """The predictions (see ``member_columns``) and the column ``label`` in a Parquet file; other columns are ignored."""
    file = open_parquet(path)
    rows, schema = file.metadata.num_rows, file.schema_arrow
    arrays = {name: _stored(path, rows, columns) for name, columns in member_columns(schema).items()}
    if name := _label_column(schema):
        read = _reading(path, [name], VALUES_A_BATCH, lambda table, start: _values(table[name], name, start))
        arrays["labels"] = Stored((rows,), str(schema.field(name).type), STREAMED, read)
    return arrays


def _stored(path: Path, rows: int, columns: MemberColumns) -> Stored:
    batch_rows = max(1, VALUES_A_BATCH // (columns.members * columns.classes))
    read = _reading(path, columns.names, batch_rows, columns.values)
    return Stored((columns.members, rows, columns.classes), columns.dtype, STREAMED, read, columns.problem)


def _reading(
    path: Path, names: Sequence[str], batch_rows: int, values: Callable[[Any, int], NDArray]
) -> Callable[[int, int], NDArray]:
    reader = RowReader(lambda: open_parquet(path), names, batch_rows)

    def read(start: int, stop: int) -> NDArray:
        with readable(path):
            return values(reader.read(start, stop), start)

    return read


class RowReader:
    """Rows of some columns of a file, in order without starting over; going back starts over at the right row group."""

    def __init__(self, open_file: Callable[[], pq.ParquetFile], columns: Sequence[str], batch_rows: int) -> None:
        self._open, self._columns, self._batch_rows = open_file, list(columns), batch_rows
        self._position = -1
        self._batches: Iterator[Any] = iter(())
        self._rest: Any = None

    def read(self, start: int, stop: int, /) -> Any:
        """Rows start..stop as an Arrow table, each column in one piece."""
        if start != self._position:
            self._seek(start)
        return self._take(stop - start).combine_chunks()

    def _seek(self, start: int) -> None:
        file = self._open()
        first, group = 0, 0
        while group < file.num_row_groups - 1 and first + file.metadata.row_group(group).num_rows <= start:
            first += file.metadata.row_group(group).num_rows
            group += 1
        rows, columns = self._batch_rows, self._columns  # no cycle of references: the file is let go of at once
        self._batches = (
            batch
            for number in range(group, file.num_row_groups)
            for batch in file.iter_batches(rows, row_groups=[number], columns=columns)
        )
        self._position, self._rest = first, file.schema_arrow.empty_table().select(self._columns)
        self._take(start - first)

    def _take(self, count: int) -> Any:
        pieces = [self._rest]
        missing = count - len(self._rest)
        while missing > 0:
            batch = next(self._batches, None)
            if batch is None:
                raise EOFError("it has fewer rows than its footer says")
            pieces.append(pa.Table.from_batches([batch]))
            missing -= len(batch)
        table = pa.concat_tables(pieces)
        self._rest = table.slice(count)
        self._position += count
        return table.slice(0, count)


def refuse_nulls(column: Any, start: int, message: str, /) -> None:
    """Raise the message, with ``{row}`` filled in, where a column that begins at row ``start`` misses a value."""
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy()))
        raise UnsuitableError(message.format(row=row))


def _values(column: Any, name: str, start: int) -> NDArray:
    refuse_nulls(column, start, f"column {name!r} has no value in row {{row}}; drop or fill missing rows first.")
    return from_fixed_lists(column)


def from_fixed_lists(column: Any, /) -> NDArray:
    """The values of (nested) fixed-size lists, flat; a missing number becomes NaN, a missing list is refused."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    while pa.types.is_fixed_size_list(array.type):
        if array.null_count:  # flatten() would leave it out and shift all later values
            raise UnsuitableError("a list of members lacks one member's list; drop or fill incomplete rows first.")
        array = array.flatten()
    return array.to_numpy(zero_copy_only=False)


def fixed_lists(array: NDArray, /) -> pa.Array:
    """(rows, a, b, ...) as rows of nested fixed-size lists, without a copy of floats."""
    column = pa.array(array.reshape(-1))
    for size in reversed(array.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def write_predictions(file: BinaryIO, name: str, values: NDArray, labels: NDArray | None, /) -> None:
    """Members' lists in one column, and ``label`` where there are labels, in row groups of a readable size."""
    members, rows, classes = values.shape
    size = max(1, VALUES_A_GROUP // (members * classes))

    def table(start: int, stop: int) -> pa.Table:
        columns = {name: fixed_lists(np.ascontiguousarray(values[:, start:stop].transpose(1, 0, 2)))}
        return pa.table(columns if labels is None else columns | {"label": labels[start:stop]})

    with pq.ParquetWriter(file, table(0, 0).schema, use_dictionary=["label"], write_page_checksum=True) as writer:
        for start in range(0, rows, size):
            writer.write_table(table(start, start + size))


GROUP_ROWS: Final = 1 << 16
ENCODED: Final = ["prediction", "label", "decision", "reason"]  # by a dictionary, since values repeat
SETTINGS: Final = "credalens"


@final
class ParquetWriter:
    """Writes scored rows in row groups of a useful size, however few come at a time: a ``RowWriter``."""

    def __init__(self, file: BinaryIO, settings: Mapping[str, Any], id_column: str | None = None, /) -> None:
        self._file, self._id_column = file, id_column
        self._metadata = {SETTINGS: json.dumps(settings)}
        self._waiting: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def write(self, columns: dict[str, NDArray], ids: Any = None, /) -> None:
        """Write some rows, once there are enough for a row group."""
        first = {} if self._id_column is None else {self._id_column: ids}
        self._waiting.append(pa.table(first | {name: fixed_lists(column) for name, column in columns.items()}))
        if sum(map(len, self._waiting)) >= GROUP_ROWS:
            self._write_group()

    def finish(self, notes: Mapping[str, str], /) -> None:
        """Write what is left, the notes into the footer."""
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.add_key_value_metadata(dict(notes))
        self.close()

    def close(self) -> None:
        """Let go of the file, also after an error."""
        if self._writer is not None:
            self._writer.close()

    def _write_group(self) -> None:
        table = pa.concat_tables(self._waiting).replace_schema_metadata(self._metadata)
        self._waiting = []
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema, use_dictionary=ENCODED, write_page_checksum=True)
        self._writer.write_table(table, row_group_size=max(1, len(table)))
