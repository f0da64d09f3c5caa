"""Files beside the predictions that ``evaluate`` takes: pictures, columns to group by, names of classes; and its call."""

from __future__ import annotations

import csv
import io
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np

from credalens.checks.options import count_text
from credalens.storage.formats.arrays import npy_arrays, npz_arrays
from credalens.storage.formats.files import UnsuitableError, check_unfolded, readable

VALUE_BYTES: Final = 64  # of one value of a column as a Python object, about
TEXTS: Final = ("--title", "--name")
"""Options whose values stand on the page as they were typed, and are no paths."""


def read_images(path: Path, /, *, max_bytes: int | None = None) -> Any:
    """The arrays of an .npz by name, or the one array of an .npy; ``max_bytes`` is that of ``open_predictions``."""
    with _named("--images"), readable(path):
        if (form := path.suffix.lower()) not in (".npz", ".npy"):
            raise UnsuitableError("must be an .npz, with an array for each data set, or an .npy.")
        arrays = npz_arrays(path) if form == ".npz" else npy_arrays(path)
        check_unfolded(sum(array.unfolded_bytes for array in arrays.values()), path.stat().st_size, max_bytes)
        images = {}
        for name, stored in arrays.items():
            if len(shape := stored.shape) < 3:
                raise UnsuitableError(f"array {name!r} of shape {shape} holds no pictures, (rows, height, width, ...).")
            images[name] = stored.read(0, shape[0], 0)
    return images if form == ".npz" else images[""]


def read_groups(path: Path, /, *, max_bytes: int | None = None) -> dict[str, Any]:
    """Column -> its values, of a .csv with a heading or of a .parquet; ``max_bytes`` is that of ``open_predictions``."""
    with _named("--groups"), readable(path):
        if (form := path.suffix.lower()) not in (".csv", ".parquet"):
            raise UnsuitableError("must be a .csv with a heading, or a .parquet.")
        return _parquet(path, max_bytes) if form == ".parquet" else _csv(path)


@contextmanager
def _named(option: str) -> Iterator[None]:
    """Name the option in an error about its file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{option} {error}") from error


def _csv(path: Path) -> dict[str, list[str]]:
    lines = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        heading, *rows = list(lines) or [[]]
    except csv.Error as error:
        raise UnsuitableError(f"line {lines.line_num} cannot be read ({error}); is a quotation mark open?") from error
    if not heading or len(set(heading)) < len(heading):
        raise UnsuitableError(f"the first line must name every column, each once; got {heading}.")
    bad = next((n for n, row in enumerate(rows, start=2) if len(row) != len(heading)), None)
    if bad is not None:
        values = count_text(len(rows[bad - 2]), "value")
        raise UnsuitableError(f"line {bad} has {values} for {count_text(len(heading), 'column')}.")
    return {name: [row[place] for row in rows] for place, name in enumerate(heading)}


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnsuitableError(f"is not UTF-8 text ({error}).") from error


def _parquet(path: Path, max_bytes: int | None) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as source:
        footer = pq.read_metadata(source)
        schema = footer.schema.to_arrow_schema()
        if nested := [field.name for field in schema if pa.types.is_nested(field.type)]:
            raise UnsuitableError(f"column {nested[0]!r} holds lists; a column has one value for each row.")
        check_unfolded(_unfolded_bytes(footer), path.stat().st_size, max_bytes)
        texts = [field.name for field in schema if str(field.type) in ("string", "binary")]
        table = pq.ParquetFile(source, read_dictionary=texts, page_checksum_verification=True).read()
    return {name: _values(table[name].combine_chunks()) for name in table.column_names}


def _unfolded_bytes(footer: Any) -> int:
    """By rows and row groups: Arrow aborts the process when it is asked about the columns of some damaged files."""
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    return VALUE_BYTES * footer.num_rows * footer.num_columns + sum(group.total_byte_size for group in groups)


def _values(column: Any) -> list[Any]:
    """The values as Python's objects; a text that repeats is one object, whatever its length."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    texts = [*column.dictionary.to_pylist(), None]
    return [texts[place] for place in np.asarray(column.indices.fill_null(len(texts) - 1))]


def read_class_names(path: Path, classes: int, /) -> list[str]:
    """The names of ``classes`` classes, a line each."""
    with readable(path):
        names = [line.strip() for line in re.split("\r\n?|\n", _text(path)) if line.strip()]
        if len(names) != classes:
            raise UnsuitableError(f"{count_text(len(names), 'name')} for {classes} classes; write one name per line.")
    return names


def made_by(*, full_paths: bool = False) -> str:
    """When, and by which command; without the folders of files, unless they are wanted."""
    from credalens.report.page import now

    arguments = sys.argv[1:]
    return f"{now()}: {shlex.join(['credalens', *(arguments if full_paths else without_folders(arguments))])}"


def without_folders(arguments: Sequence[str], /) -> list[str]:
    """A command's arguments with files by their names alone.

    >>> without_folders(["--id", "/home/me/test.npz", "--ood=svhn=../svhn.npz", "--title", "May 1/2", "-o", "/srv/out/"])
    ['--id', 'test.npz', '--ood=svhn=svhn.npz', '--title', 'May 1/2', '-o', 'out']
    """
    kept = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        text = before in TEXTS or argument.startswith(tuple(f"{option}=" for option in TEXTS))
        kept.append(argument if text else re.sub("[^=]+", lambda part: _name(part[0]), argument))
    return kept


def _name(path: str) -> str:
    short = path[:2] if re.match("-[A-Za-z].*[/\\\\]", path) else ""  # an option with its value, as -o/srv/out
    return short + (PurePath(path).name or path)
