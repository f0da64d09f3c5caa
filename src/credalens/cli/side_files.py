"""Files beside the predictions that ``evaluate`` takes: pictures of the inputs, and columns to group them by."""

from __future__ import annotations

import csv
import shlex
import sys
from pathlib import Path
from typing import Any

from credalens.checks.counted import count_text


def read_images(path: Path, /) -> Any:
    """The arrays of an .npz by name, or the one array of an .npy."""
    import numpy as np

    if path.suffix not in (".npz", ".npy"):
        raise ValueError(f"--images {path}: must be an .npz, with an array for each data set, or an .npy.")
    try:
        loaded = np.load(path, allow_pickle=False)
        return loaded if path.suffix == ".npy" else {name: loaded[name] for name in loaded.files}
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"--images {path}: cannot be read: it is damaged, cut short or of another format.") from error


def read_groups(path: Path, /) -> dict[str, list[Any]]:
    """Column -> its values, of a .csv with a heading or of a .parquet."""
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix != ".csv":
        raise ValueError(f"--groups {path}: must be a .csv with a heading, or a .parquet.")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            heading, *rows = list(csv.reader(file)) or [[]]
    except UnicodeDecodeError as error:
        raise ValueError(f"--groups {path}: is not UTF-8 text ({error}).") from error
    if not heading or len(set(heading)) < len(heading):
        raise ValueError(f"--groups {path}: the first line must name every column, each once; got {heading}.")
    bad = next((n for n, row in enumerate(rows, start=2) if len(row) != len(heading)), None)
    if bad is not None:
        raise ValueError(
            f"--groups {path}: line {bad} has {count_text(len(rows[bad - 2]), 'value')} for "
            f"{count_text(len(heading), 'column')}."
        )
    return {name: [row[place] for row in rows] for place, name in enumerate(heading)}


def _parquet(path: Path) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns: dict[str, list[Any]] = pq.read_table(path).to_pydict()
    except pa.ArrowInvalid as error:
        raise ValueError(f"--groups {path}: cannot be read: it is damaged, cut short or of another format.") from error
    return columns


def made_by() -> str:
    """When, and by which command."""
    from credalens.report.footer import now

    command = shlex.join(["credalens", *sys.argv[1:]])
    return f"{now()}: {command}"
