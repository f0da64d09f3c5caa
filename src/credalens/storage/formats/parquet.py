"""Member predictions in Parquet: fixed-size lists in columns, streamed in batches, never the whole file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from credalens.storage.formats.stored import Stored
from credalens.storage.formats.suffixes import UnsuitableError, readable

__all__ = ["fixed_lists", "from_fixed_lists", "parquet_arrays", "write_predictions"]

MEMBERS: Final = "member_*"
SCORED: Final = {"label", "probability", "lower", "upper", "set"}
VALUES_A_BATCH = 1 << 18
VALUES_A_GROUP = 1 << 23


def parquet_arrays(path: Path, /) -> dict[str, Stored]:
    """The predictions and labels among the columns of a Parquet file.

    Predictions are one column of lists (members) of lists (classes), under its own name, or columns ``member_0``,
    ``member_1``, ... with a list of classes each; labels are the integer column ``label``. Other columns are left alone.
    """
    file = _open(path)
    rows, fields = file.metadata.num_rows, {field.name: field for field in file.schema_arrow}
    if fields.keys() >= SCORED:  # or a prediction would be taken for the truth, and every one be right
        raise UnsuitableError(
            "holds scores, not predictions of members; its label is the predicted class, not the true one."
        )
    arrays = {name: _nested(path, rows, name, field.type) for name, field in fields.items() if _is_nested(field.type)}
    members = [name for name in fields if re.fullmatch(r"member_\d+", name)]
    if members:
        arrays[MEMBERS] = _side_by_side(path, rows, {name: fields[name].type for name in members})
    for name in ("label", "labels"):
        if name in fields:
            arrays["labels"] = _labels(path, rows, name, fields[name].type)
    return arrays


def _open(path: Path) -> pq.ParquetFile:
    """Read ahead a little only: by default Arrow fetches a whole row group before the first row."""
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)


def _is_nested(kind: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(kind) and pa.types.is_fixed_size_list(kind.value_type)


def _nested(path: Path, rows: int, name: str, kind: pa.DataType) -> Stored:
    members, classes = kind.list_size, kind.value_type.list_size
    cursor = _Cursor(path, [name], members * classes)

    def read(start: int, stop: int) -> NDArray:
        return np.ascontiguousarray(cursor.read(start, stop)[0].reshape(-1, members, classes).transpose(1, 0, 2))

    return Stored((members, rows, classes), _float_name(kind.value_type.value_type), "streamed", read)


def _side_by_side(path: Path, rows: int, kinds: dict[str, pa.DataType]) -> Stored:
    names = sorted(kinds, key=lambda name: int(name.removeprefix("member_")))
    if names != [f"member_{n}" for n in range(len(names))]:
        expected = f"member_0 to member_{len(names) - 1}"
        raise UnsuitableError(f"its {len(names)} member columns must be {expected}; got {', '.join(names)}.")
    if len(set(kinds.values())) > 1 or not pa.types.is_fixed_size_list(kinds[names[0]]):
        described = ", ".join(f"{name}: {kinds[name]}" for name in names)
        raise UnsuitableError(f"member columns must be fixed-size lists of one length and one type; got {described}.")
    kind = kinds[names[0]]
    cursor = _Cursor(path, names, kind.list_size)

    def read(start: int, stop: int) -> NDArray:
        return np.stack(cursor.read(start, stop))

    return Stored((len(names), rows, kind.list_size), _float_name(kind.value_type), "streamed", read)


def _labels(path: Path, rows: int, name: str, kind: pa.DataType) -> Stored:
    cursor = _Cursor(path, [name], 1)
    return Stored((rows,), str(kind), "streamed", lambda start, stop: cursor.read(start, stop)[0][:, 0])


def _float_name(kind: pa.DataType) -> str:
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind), str(kind))


class _Cursor:
    """Reads rows of some columns in order without starting over; going back starts over at the right row group."""

    def __init__(self, path: Path, columns: list[str], width: int) -> None:
        self.path, self.columns = path, columns
        self.batch_rows = max(1, VALUES_A_BATCH // (width * len(columns)))
        self.position = -1
        self.batches: Iterator[list[NDArray]] = iter(())
        self.rest: list[NDArray] = []

    def read(self, start: int, stop: int) -> list[NDArray]:
        """Rows start..stop of each column, (rows, width)."""
        with readable(self.path):
            if start != self.position:
                self._seek(start)
            return self._take(stop - start)

    def _take(self, count: int) -> list[NDArray]:
        taken = [self.rest]
        have = len(self.rest[0])
        while have < count:
            taken.append(self._next())
            have += len(taken[-1][0])
        whole = [np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in zip(*taken, strict=True)]
        self.rest = [column[count:].copy() for column in whole]
        self.position += count
        return [column[:count] for column in whole]

    def _seek(self, start: int) -> None:
        file = _open(self.path)
        first, group = 0, 0
        while group < file.num_row_groups - 1 and first + file.metadata.row_group(group).num_rows <= start:
            first += file.metadata.row_group(group).num_rows
            group += 1
        self.batches = self._decoded(file, range(group, file.num_row_groups), first)
        self.position, self.rest = first, self._next()
        self._take(start - first)

    def _next(self) -> list[NDArray]:
        batch = next(self.batches, None)
        if batch is None:
            raise EOFError("it has fewer rows than its footer says")
        return batch

    def _decoded(self, file: pq.ParquetFile, groups: range, row: int) -> Iterator[list[NDArray]]:
        for batch in file.iter_batches(self.batch_rows, row_groups=list(groups), columns=self.columns):
            columns = [batch.column(name) for name in self.columns]
            for name, column in zip(self.columns, columns, strict=True):
                _refuse_nulls(name, column, row)
            yield [from_fixed_lists(column).reshape(len(batch), -1) for column in columns]
            row += len(batch)


def _refuse_nulls(name: str, column: Any, row: int) -> None:
    if column.null_count:
        first = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise UnsuitableError(f"column {name!r} has no value in row {first}; drop or fill missing rows first.")


def from_fixed_lists(column: Any, /) -> NDArray:
    """The values of (nested) fixed-size lists, flat; a missing number becomes NaN, a missing list is refused."""
    while pa.types.is_fixed_size_list(column.type):
        if column.null_count:  # flatten() would leave it out and shift all later values
            raise UnsuitableError("a list of members lacks one member's list; drop or fill incomplete rows first.")
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False)


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

    with pq.ParquetWriter(file, table(0, 0).schema, use_dictionary=["label"]) as writer:
        for start in range(0, rows, size):
            writer.write_table(table(start, start + size))
