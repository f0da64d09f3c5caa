"""All parts in one file, with the memory of one part, whatever their number."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy

from credalens.scoring.columns import COLUMNS
from credalens.scoring.parts import Parts
from credalens.storage.atomic import atomic_file
from credalens.storage.formats.parquet import from_fixed_lists

__all__ = ["merge_parts"]

GROUP_ROWS = 1 << 16
Advance = Callable[[int], None]


def merge_parts(parts: Parts, target: Path, advance: Advance, /) -> None:
    """Write the output; it takes its name when it is whole. ``advance`` hears how many rows have been written."""
    write = _write_npz if target.suffix.lower() == ".npz" else _write_parquet
    with atomic_file(target, scratch=parts.folder) as file:
        write(file, parts, advance)


def _write_parquet(file: BinaryIO, parts: Parts, advance: Advance) -> None:
    first = pq.read_schema(parts.path(0))
    schema = first.with_metadata({"credalens": json.dumps(parts.plan.settings())})
    with pq.ParquetWriter(file, schema, use_dictionary=["label"]) as writer:
        done = 0
        for table in _row_groups(parts):
            writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=len(table))
            advance(done := done + len(table))


def _row_groups(parts: Parts) -> Iterator[pa.Table]:
    """Tables of a useful size, however small the parts are."""
    waiting: list[pa.Table] = []
    for path in parts.paths():
        waiting.append(pq.ParquetFile(path).read().replace_schema_metadata())
        if sum(map(len, waiting)) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _write_npz(file: BinaryIO, parts: Parts, advance: Advance) -> None:
    """A .npz that ``np.load`` maps: each column is an entry, uncompressed, with a fixed date so that runs are equal."""
    with zipfile.ZipFile(file, "w") as archive:
        for number, name in enumerate(COLUMNS, start=1):
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                _write_column(entry, parts, name)  # type: ignore[arg-type]
            advance(parts.plan.rows * number // len(COLUMNS))
        with archive.open(zipfile.ZipInfo("settings.npy"), "w") as entry:
            npy.write_array(entry, np.array(json.dumps(parts.plan.settings())), allow_pickle=False)


def _write_column(entry: BinaryIO, parts: Parts, name: str) -> None:
    for number, path in enumerate(parts.paths()):
        column = pq.ParquetFile(path).read([name])[name].combine_chunks()
        values = from_fixed_lists(column)
        if number == 0:
            width = len(values) // len(column)
            shape = (parts.plan.rows, width) if width > 1 else (parts.plan.rows,)
            npy.write_array_header_1_0(entry, {"descr": values.dtype.str, "fortran_order": False, "shape": shape})
        entry.write(np.ascontiguousarray(values).data)
