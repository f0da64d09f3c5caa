"""Whether joined tables describe the same rows, each once; looked at before anything is scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from credalens.checks.counted import count_text
from credalens.scoring.parquet_folders import ParquetTable, readable_part, row_batches

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
