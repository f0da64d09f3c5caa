"""All parts of a file in one, with the memory of one row group, whatever their number."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy

from credalens.scoring.columns import COLUMNS
from credalens.storage.formats.parquet import from_fixed_lists

__all__ = ["merge_parts"]

GROUP_ROWS = 1 << 16
Written = Callable[[int], None]


def merge_parts(
    parts: Sequence[Path], rows: int, file: BinaryIO, suffix: str, settings: dict[str, Any], written: Written, /
) -> None:
    """Write Arrow files with as many rows in all as one .parquet or .npz; ``written`` is called with the rows so far."""
    if suffix == ".npz":
        _write_npz(parts, rows, file, settings, written)
    else:
        _write_parquet(parts, file, settings, written)


def _read(part: Path, columns: list[int] | None = None) -> pa.Table:
    options = pa.ipc.IpcReadOptions(included_fields=columns)
    with pa.OSFile(str(part)) as source, pa.ipc.open_file(source, options=options) as file:
        return file.read_all().replace_schema_metadata()


def _write_parquet(parts: Sequence[Path], file: BinaryIO, settings: dict[str, Any], written: Written) -> None:
    metadata = {"credalens": json.dumps(settings)}
    schema = _read(parts[0]).schema.with_metadata(metadata)
    rows = 0
    with pq.ParquetWriter(file, schema, use_dictionary=["label"]) as writer:
        for table in _row_groups(parts):
            writer.write_table(table.replace_schema_metadata(metadata), row_group_size=len(table))
            written(rows := rows + len(table))


def _row_groups(parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Tables of a useful size, however small the parts are."""
    waiting: list[pa.Table] = []
    for part in parts:
        waiting.append(_read(part))
        if sum(map(len, waiting)) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _write_npz(parts: Sequence[Path], rows: int, file: BinaryIO, settings: dict[str, Any], written: Written) -> None:
    """A .npz that ``np.load`` maps: each column is an entry, uncompressed, with a fixed date so that runs are equal."""
    with zipfile.ZipFile(file, "w") as archive:
        for number, name in enumerate(COLUMNS):
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                _write_column(parts, rows, number, entry)  # type: ignore[arg-type]
            written(rows * (number + 1) // len(COLUMNS))
        with archive.open(zipfile.ZipInfo("settings.npy"), "w") as entry:
            npy.write_array(entry, np.array(json.dumps(settings)), allow_pickle=False)


def _write_column(parts: Sequence[Path], rows: int, number: int, entry: BinaryIO) -> None:
    for part in parts:
        column = _read(part, [number]).column(0)
        values = from_fixed_lists(column)
        if part == parts[0]:
            width = len(values) // len(column)
            shape = (rows, width) if width > 1 else (rows,)
            npy.write_array_header_1_0(entry, {"descr": values.dtype.str, "fortran_order": False, "shape": shape})
        entry.write(np.ascontiguousarray(values).data)
