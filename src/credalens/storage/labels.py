"""True classes in a file, next to the predictions or in one of their own."""

from __future__ import annotations

import os
import re

import numpy as np
from numpy.typing import NDArray

from credalens.checks.counted import count_text
from credalens.storage.arrays_in_file import LABELS, arrays_in
from credalens.storage.formats.limits import check_unfolded
from credalens.storage.formats.stored_array import Stored
from credalens.storage.formats.suffixes import UnsuitableError, readable, source_file


def read_labels(
    path: str | os.PathLike[str],
    /,
    *,
    rows: int | None = None,
    classes: int | None = None,
    max_bytes: int | None = None,
) -> NDArray[np.int64]:
    """The index of the true class of each row, as integers (rows,).

    They are the array of a ``.npy``, ``labels`` (or the only array) of a ``.npz`` or ``.safetensors``, or the column
    ``label`` of a Parquet file. With ``rows`` and ``classes`` their number, before they are read, and their range are
    checked as well. ``max_bytes`` is that of ``open_predictions``.

    >>> import tempfile, numpy as np
    >>> path = tempfile.mkdtemp() + "/labels.npy"
    >>> np.save(path, np.array([2, 0, 1], dtype=np.uint8))
    >>> read_labels(path, rows=3, classes=3)
    array([2, 0, 1])
    """
    source = source_file(path)
    with readable(source):
        stored = _choose(arrays_in(source))
        check_unfolded(stored.unfolded_bytes, source.stat().st_size, max_bytes)
        check_rows(stored.rows, rows)
        return checked_labels(stored.read(0, stored.rows), classes)


def _choose(arrays: dict[str, Stored]) -> Stored:
    name = next(iter(arrays)) if LABELS not in arrays and len(arrays) == 1 else LABELS
    if name not in arrays:
        raise UnsuitableError(f"holds no labels; found {', '.join(map(repr, arrays)) or 'nothing'}.")
    stored = arrays[name]
    _check_form(stored.dtype, stored.shape)
    return stored


def _check_form(dtype: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 1 or not re.fullmatch(r"u?int\d+", dtype):
        raise UnsuitableError(
            f"labels must be integers of shape (rows,), the index of the true class; got {dtype} of shape {shape}. "
            "Turn one-hot labels into indices with argmax(-1) and names with np.searchsorted(model.classes_, labels), and give "
            "a column of other values another name."
        )


def check_rows(labels: int, rows: int | None, /) -> None:
    """As many labels as rows of predictions, where their number is known; call it in ``readable``."""
    if rows is not None and labels != rows:
        raise UnsuitableError(
            f"{count_text(labels, 'label')} for {count_text(rows, 'row')} of predictions; every row needs one."
        )


def checked_labels(labels: NDArray, classes: int | None, /, *, start: int = 0) -> NDArray[np.int64]:
    """Labels of rows from ``start`` on, which are integers in the range of the classes; call it in ``readable``."""
    _check_form(labels.dtype.name, labels.shape)
    labels = labels.astype(np.int64)
    bad = labels < 0 if classes is None else (labels < 0) | (labels >= classes)
    if bad.any():
        row = int(bad.argmax())
        span = "at least 0" if classes is None else f"from 0 to {classes - 1}"
        raise UnsuitableError(
            f"{int(bad.sum())} of {bad.size} labels are out of range, the first is {labels[row]} in row {start + row}; labels "
            f"are {span}."
        )
    return labels
