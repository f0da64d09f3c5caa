"""Rows of a table by their ids, wherever in its files they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from credalens.checks.counted import count_text
from credalens.scoring.parquet_folders import ParquetTable, readable_part
from credalens.storage.formats.parquet import MemberColumns
from credalens.storage.formats.suffixes import UnsuitableError

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
