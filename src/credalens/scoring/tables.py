"""Member predictions in a table of many Parquet files: which columns they are, and their rows in chunks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs

from credalens.scoring.places import FoundFile, Place, place_of
from credalens.storage.formats.parquet import from_fixed_lists
from credalens.storage.formats.suffixes import UnsuitableError, readable
from credalens.storage.reading import check_predictions

__all__ = ["MemberColumns", "Table", "batches", "columns_in", "open_table", "schema_of", "values_of"]

FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


@dataclass(frozen=True)
class Table:
    """The predictions of one model, or of all members: a folder of Parquet files, its parts."""

    source: Place  # what was asked for: the folder, or the only file
    root: Place
    parts: tuple[FoundFile, ...]

    def __str__(self) -> str:
        return str(self.source)

    def part(self, number: int, /) -> Place:
        """Where a part lies."""
        return self.root / self.parts[number].name

    @property
    def names(self) -> list[str]:
        """The relative names of all parts."""
        return [part.name for part in self.parts]


@dataclass(frozen=True)
class MemberColumns:
    """Where a table keeps its members: ``names`` hold ``members`` distributions over ``classes`` classes."""

    names: tuple[str, ...]
    members: int
    classes: int
    dtype: str


def open_table(source: str | os.PathLike[str], /, filesystem: Any = None) -> Table:
    """Find the parts of a table: all Parquet files below a folder, or one file."""
    place = place_of(source, filesystem)
    if place.kind == fs.FileType.NotFound:
        raise FileNotFoundError(f"{place}: no such folder.")
    if place.kind == fs.FileType.File:
        return Table(place, place.parent(), (_only_parquet(place).as_one_file(),))
    parts = place.parquet_files()
    if not parts:
        raise ValueError(f"{place}: holds no Parquet files; a table is a folder of files that end in .parquet.")
    return Table(place, place, parts)


def _only_parquet(place: Place) -> Place:
    if not place.path.lower().endswith(".parquet"):
        raise ValueError(f"{place}: must be a folder of Parquet files, or one file that ends in .parquet.")
    return place


def schema_of(part: Place, /) -> Any:
    """The Arrow schema in the footer of a file."""
    with _named(part), part.open() as file:
        return pq.read_schema(file)


def columns_in(part: Place, /, *, logits: bool, id_column: str | None) -> MemberColumns:
    """The columns that hold members, by the rules of ``open_predictions``; a flat list of classes is one member."""
    schema = schema_of(part)
    with _named(part):
        columns = _columns(schema, "logits" if logits else "probs")
        if id_column is not None and id_column not in schema.names:
            raise UnsuitableError(f"has no column {id_column!r} of row ids; it has {', '.join(schema.names)}.")
    check_predictions((columns.members, 1, columns.classes), columns.dtype, f"{part}: {', '.join(columns.names)}")
    return columns


def _columns(schema: Any, wanted: str) -> MemberColumns:
    numbered = [field for field in schema if re.fullmatch(r"member_\d+", field.name)]
    lists = [field for field in schema if pa.types.is_fixed_size_list(field.type) and field not in numbered]
    chosen = [field for field in lists if field.name == wanted] or (lists if len(lists) == 1 and not numbered else [])
    if chosen:
        return _one_column(chosen[0], wanted)
    if not numbered:
        found = ", ".join(f"{field.name}: {field.type}" for field in schema) or "nothing"
        raise UnsuitableError(f"fixed-size lists are looked for under {wanted!r}; found {found}.")
    return _side_by_side(numbered)


def _one_column(field: Any, wanted: str) -> MemberColumns:
    if wanted == "probs" and field.name == "logits":
        raise UnsuitableError("holds logits, not probabilities; say so with logits=True (--logits).")
    inner = field.type.value_type
    if pa.types.is_fixed_size_list(inner):
        return MemberColumns((field.name,), field.type.list_size, inner.list_size, _float(inner.value_type))
    return MemberColumns((field.name,), 1, field.type.list_size, _float(inner))


def _side_by_side(fields: Sequence[Any]) -> MemberColumns:
    names = tuple(f"member_{n}" for n in range(len(fields)))
    kind = fields[0].type
    alike = {field.name for field in fields} == set(names) and all(field.type == kind for field in fields)
    if not alike or not pa.types.is_fixed_size_list(kind):
        found = ", ".join(f"{field.name}: {field.type}" for field in fields)
        raise UnsuitableError(f"members must be {names[0]} to {names[-1]}, fixed-size lists of one type; got {found}.")
    return MemberColumns(names, len(names), kind.list_size, _float(kind.value_type))


def _float(kind: Any) -> str:
    return FLOATS.get(str(kind), str(kind))


def batches(part: Place, columns: Iterable[str], rows: int, /) -> Iterator[Any]:
    """Columns of a file as Arrow tables of exactly ``rows`` rows, but for the last; an empty file gives one of none."""
    names = list(dict.fromkeys(columns))
    with _named(part), part.open() as source:
        file = pq.ParquetFile(source, pre_buffer=not part.local, buffer_size=1 << 20 if part.local else 0)
        waiting, have, empty = list[Any](), 0, True
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(rows, row_groups=[group], columns=names):
                waiting.append(batch)
                have += len(batch)
                while have >= rows:
                    table = pa.Table.from_batches(waiting)
                    empty = False
                    yield table.slice(0, rows).combine_chunks()
                    waiting, have = table.slice(rows).to_batches(), have - rows
        if have:
            yield pa.Table.from_batches(waiting).combine_chunks()
        elif empty:
            yield file.schema_arrow.empty_table().select(names)


def values_of(batch: Any, columns: MemberColumns, /, *, start: int = 0) -> NDArray:
    """The members' values (members, rows, classes) in some rows of a table, the first of which is row ``start``."""
    arrays = [_values(batch[name], name, start) for name in columns.names]
    if len(arrays) == 1:
        shaped = arrays[0].reshape(len(batch), columns.members, columns.classes)
        return np.ascontiguousarray(shaped.transpose(1, 0, 2))
    return np.stack([array.reshape(len(batch), columns.classes) for array in arrays])


def _values(column: Any, name: str, start: int) -> NDArray:
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy()))
        raise UnsuitableError(f"column {name!r} has no value in row {row}; drop or fill missing rows first.")
    whole = column.combine_chunks()
    return from_fixed_lists(whole if isinstance(whole, pa.Array) else whole.chunk(0))


def _named(part: Place) -> Any:
    return readable(Path(part.path))
