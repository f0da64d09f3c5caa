"""Tables of member predictions in folders of Parquet, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from credalens.storage.formats.parquet import fixed_lists, from_fixed_lists


def write_part(path: Path, values: np.ndarray, ids=None, *, name: str = "probs", group: int = 7) -> None:
    """Values (rows, classes) of one member or (rows, members, classes) of several, with row ids or without."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {} if ids is None else {"id": pa.array(ids)}
    pq.write_table(pa.table({**columns, name: fixed_lists(np.ascontiguousarray(values))}), path, row_group_size=group)


def write_table(folder: Path, values: np.ndarray, sizes, *, ids=None, name: str = "probs") -> None:
    """All members' values (members, rows, classes) in parts of these sizes."""
    rows = values.transpose(1, 0, 2)
    start = 0
    for number, size in enumerate(sizes):
        own = slice(start, start + size)
        write_part(folder / f"part-{number}.parquet", rows[own], None if ids is None else ids[own], name=name)
        start += size
    assert start == len(rows)


def write_model(folder: Path, values: np.ndarray, ids, places) -> None:
    """One member's values (rows, classes): each part holds the rows whose places are listed for it."""
    for number, own in enumerate(places):
        write_part(folder / f"part-{number}.parquet", values[own], ids.take(own))


def read_columns(paths) -> dict[str, np.ndarray]:
    """All columns of some files, one below the other."""
    table = pa.concat_tables(pq.read_table(path).replace_schema_metadata() for path in paths).combine_chunks()
    found = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        flat = from_fixed_lists(column)
        found[name] = flat if len(flat) == len(column) else flat.reshape(len(column), -1)
    return found


def spoil_row(path: Path, row: int) -> None:
    """Make a row of a part sum to two."""
    table = pq.read_table(path)
    values = from_fixed_lists(table["probs"].combine_chunks()).reshape(len(table), *shape_of(table)).copy()
    values[row, 0] *= 2
    columns = {name: table[name] for name in table.column_names} | {"probs": fixed_lists(values)}
    pq.write_table(pa.table(columns), path, row_group_size=7)


def shape_of(table: pa.Table) -> tuple[int, int]:
    kind = table.schema.field("probs").type
    return kind.list_size, kind.value_type.list_size
