"""All parts of a file in one, with the memory of one row group, while later parts are still being scored."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import BinaryIO, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy

from credalens.scoring.settings import ENCODED, ScoringSettings, values_of

GROUP_ROWS: Final = 1 << 16
Written = Callable[[int], None]


class _CancelledError(Exception):
    """The run was stopped."""


@final
class Merger:
    """Writes parts, which are Arrow files, into one .parquet or .npz by a thread of its own.

    One core encodes Parquet, which takes about as long as scoring: hence the thread.
    """

    def __init__(self, parts: Sequence[Path], settings: ScoringSettings, file: BinaryIO, suffix: str, /) -> None:
        self._parts = parts
        self._finished: set[int] = set()
        self._handed_over = 0
        self._queue: SimpleQueue[Path | _CancelledError | None] = SimpleQueue()
        self._written: SimpleQueue[int | None] = SimpleQueue()
        self._pool = ThreadPoolExecutor(1)
        write = _write_npz if suffix == ".npz" else _write_parquet
        self._result = self._pool.submit(write, self._arriving(), settings, file, self._written.put)
        self._result.add_done_callback(lambda _: self._written.put(None))

    def add(self, part: int, /) -> None:
        """Hand over a finished part; parts may finish in any order."""
        self._finished.add(part)
        while self._handed_over in self._finished:
            self._queue.put(self._parts[self._handed_over])
            self._handed_over += 1

    def finish(self) -> Iterator[int]:
        """Wait until all is written; yields how many rows are."""
        self._queue.put(None)
        yield from iter(self._written.get, None)
        self._result.result()

    def __enter__(self) -> Merger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put(_CancelledError())
        self._pool.shutdown()

    def _arriving(self) -> Iterator[Path]:
        """The parts in order, each as soon as it is there."""
        while (part := self._queue.get()) is not None:
            if isinstance(part, _CancelledError):
                raise part
            yield part


def _read(part: Path, columns: list[int] | None = None) -> pa.Table:
    options = pa.ipc.IpcReadOptions(included_fields=columns)
    with pa.OSFile(str(part)) as source, pa.ipc.open_file(source, options=options) as file:
        return file.read_all().replace_schema_metadata()


def _column_names(part: Path) -> list[str]:
    with pa.OSFile(str(part)) as source, pa.ipc.open_file(source) as file:
        return list(file.schema.names)


def _write_parquet(parts: Iterable[Path], settings: ScoringSettings, file: BinaryIO, written: Written) -> None:
    metadata = {"credalens": json.dumps(settings.for_readers())}
    groups = _row_groups(parts)
    first = next(groups)
    done = 0
    with pq.ParquetWriter(
        file, first.schema.with_metadata(metadata), use_dictionary=ENCODED, write_page_checksum=True
    ) as writer:
        for table in chain([first], groups):
            writer.write_table(table.replace_schema_metadata(metadata), row_group_size=len(table))
            written(done := done + len(table))


def _row_groups(parts: Iterable[Path]) -> Iterator[pa.Table]:
    """Tables of a useful size, however small the parts are."""
    waiting: list[pa.Table] = []
    for part in parts:
        waiting.append(_read(part))
        if sum(map(len, waiting)) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _write_npz(parts: Iterable[Path], settings: ScoringSettings, file: BinaryIO, written: Written) -> None:
    """A .npz that ``np.load`` maps: each column is an entry, uncompressed, with a fixed date so that runs are equal."""
    paths, rows = list(parts), settings.rows or 0
    names = _column_names(paths[0])
    with zipfile.ZipFile(file, "w") as archive:
        for number, name in enumerate(names):
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                _write_column(paths, rows, number, entry)  # type: ignore[arg-type]
            written(rows * (number + 1) // len(names))
        with archive.open(zipfile.ZipInfo("settings.npy"), "w") as entry:
            npy.write_array(entry, np.array(json.dumps(settings.for_readers())), allow_pickle=False)


def _write_column(parts: Sequence[Path], rows: int, number: int, entry: BinaryIO) -> None:
    for part in parts:
        table = _read(part, [number])
        column = table.column(0)
        values = values_of(table.column_names[0], column)
        if part == parts[0]:
            width = len(values) // len(column)
            shape = (rows, width) if width > 1 else (rows,)
            npy.write_array_header_1_0(entry, {"descr": values.dtype.str, "fortran_order": False, "shape": shape})
        entry.write(np.ascontiguousarray(values).data)
