"""Member predictions in files, read by rows and written: .npy, .npz, .parquet and .safetensors.

And the true classes: next to the predictions, or in a file of their own.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.arrays import check_classes, row_tolerance
from credalens.checks.doubtful_members import are_distributions, few_rows
from credalens.checks.members import raise_no_members
from credalens.checks.options import count_text, needing
from credalens.storage.atomic import atomic_file, check_file
from credalens.storage.formats import arrays as formats
from credalens.storage.formats.arrays import BFLOAT16, STREAMED, Stored
from credalens.storage.formats.files import UnsuitableError, check_unfolded, format_of, readable, source_file

LABELS: Final = "labels"
MANY_AXES: Final = (
    "Rows are samples of their own, which the pixels of an image are not: save one prediction of each image, such as its "
    "mean or worst pixel; if every entry really is a sample of its own, give them one axis, "
    "array.reshape(members, -1, classes)."
)


def _arrays_in(path: Path) -> dict[str, Stored]:
    """Find the arrays without reading them. Arrow is imported only for Parquet."""
    form = format_of(path)
    if form == ".parquet":
        with needing("pyarrow", part="reading Parquet", extra="cli"):
            from credalens.storage.formats.parquet import parquet_arrays

        return parquet_arrays(path)
    readers = {".npy": formats.npy_arrays, ".npz": formats.npz_arrays, ".safetensors": formats.safetensors_arrays}
    return readers[form](path)


def choose_predictions(names: Iterable[str], /, *, logits: bool) -> str:
    """The name of the predictions among arrays: ``probs`` (or ``logits``, with ``logits=True``), or the only one."""
    wanted = "logits" if logits else "probs"
    arrays = [name for name in names if name != LABELS]
    if wanted in arrays:
        return wanted
    if arrays == ["logits"]:
        raise UnsuitableError("holds logits, not probabilities; say so with logits=True (--logits).")
    if arrays == ["probs"]:
        raise UnsuitableError("holds probabilities, not logits; leave out logits=True (--logits).")
    if len(arrays) != 1:
        raise UnsuitableError(
            f"predictions are looked for under {wanted!r}, or in the only array; found "
            f"{', '.join(map(repr, names)) or 'none'}. "
            "credalens.storage.save_predictions(path, probs, labels) writes a file as it must be."
        )
    return arrays[0]


def read_labels(
    path: str | os.PathLike[str], /, *, rows: int | None = None, classes: int | None = None,
    max_bytes: int | None = None,
) -> NDArray[np.int64]:  # fmt: skip
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
        arrays = _arrays_in(source)
        name = next(iter(arrays)) if LABELS not in arrays and len(arrays) == 1 else LABELS
        if name not in arrays:
            raise UnsuitableError(f"holds no labels; found {', '.join(map(repr, arrays)) or 'nothing'}.")
        stored = arrays[name]
        _check_form(stored.dtype, stored.shape)
        check_unfolded(stored.unfolded_bytes, source.stat().st_size, max_bytes)
        _check_rows(stored.rows, rows)
        return checked_labels(stored.read(0, stored.rows), classes)


def _check_form(dtype: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 1 or not re.fullmatch(r"u?int\d+", dtype):
        raise UnsuitableError(
            f"labels must be integers of shape (rows,), the index of the true class; got {dtype} of shape {shape}. "
            "Turn one-hot labels into indices with argmax(-1) and names with np.searchsorted(model.classes_, labels), and give "
            "a column of other values another name."
        )


def _check_rows(labels: int, rows: int | None) -> None:
    """Refuse more or fewer labels than rows of predictions, where their number is known."""
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


NUMBERS = ("float16", BFLOAT16, "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
"""Dtypes that all formats hold: of probabilities, logits, and votes of certain members, which are zeros and ones."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions (members, rows, classes) in a file, from ``open_predictions``; ``read`` reads some of the rows.

    - ``dtype``: the precision they are stored in.
    - ``logits``: whether they are logits, for ``wrap_logits``, or probabilities, for ``wrap``.
    - ``access``: "memory-mapped", "streamed", or "loaded whole" (a compressed .npz cannot be read in part).
    - ``member_axis``: 0 where the array in the file has its members first, 1 where it has its rows first.
    """

    path: Path
    shape: tuple[int, int, int]
    dtype: str
    logits: bool
    access: str
    _stored: Stored = field(repr=False)
    _labels: Stored | None = field(repr=False)
    member_axis: int = 0

    @property
    def has_labels(self) -> bool:
        """Whether ``read_labels`` finds labels in the file."""
        return self._labels is not None

    @property
    def members(self) -> int:
        """The number of members."""
        return self.shape[0]

    @property
    def rows(self) -> int:
        """The number of inputs they predicted."""
        return self.shape[1]

    @property
    def classes(self) -> int:
        """The number of classes they chose from."""
        return self.shape[2]

    def read(self, start: int = 0, stop: int | None = None, /) -> NDArray:
        """Predictions (members, stop - start, classes) for rows start..stop, in memory; all rows by default.

        bfloat16, which NumPy does not have, comes as float32, its probabilities divided by their sum, since they
        miss one by more than float32 could.
        """
        stop = self.rows if stop is None else stop
        if not 0 <= start <= stop <= self.rows:
            raise ValueError(f"{self.path} has rows 0 to {self.rows}; cannot read rows {start} to {stop}.")
        read = self._stored.read
        values = read(start, stop, 0).swapaxes(0, 1) if self.member_axis else read(start, stop)
        return _renormalised(values) if self.dtype == BFLOAT16 and not self.logits else values

    def read_labels(self, start: int, stop: int, /) -> NDArray[np.int64]:
        """The true classes of rows start..stop, from the same file."""
        if self._labels is None:
            raise ValueError(f"{self.path} holds no labels.")
        with readable(self.path):
            _check_rows(self._labels.rows, self.rows)
            return checked_labels(self._labels.read(start, stop), self.classes, start=start)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent to another process, the file is opened there."""
        options = {"logits": self.logits, "max_bytes": _unfolded(self._stored, self._labels)}
        return partial(open_predictions, member_axis=self.member_axis, **options), (self.path,)  # type: ignore[arg-type]

    def chunks(self, rows: int, /) -> Iterator[NDArray]:
        """All predictions in order, at most ``rows`` rows at a time."""
        if rows < 1:
            raise ValueError(f"a chunk needs at least 1 row; got {rows}.")
        for start in range(0, self.rows, rows):
            yield self.read(start, min(start + rows, self.rows))


def open_predictions(
    path: str | os.PathLike[str], /, *, logits: bool = False, max_bytes: int | None = None,
    member_axis: int | None = None,
) -> Predictions:  # fmt: skip
    """Find the predictions of all members, shape (members, rows, classes), in a file; none of them is read yet.

    ``member_axis=1`` reads an array of shape (rows, members, classes). Without ``member_axis`` more members than rows cause
    a warning, except for Parquet, whose rows are always the inputs.

    - ``.npy``: one array.
    - ``.npz``, ``.safetensors``: the array ``probs`` (or ``logits``, with ``logits=True``), or the only one.
    - ``.parquet``: a column ``probs`` (or ``logits``) of fixed-size lists (members) of fixed-size lists (classes), or
      columns ``member_0``, ``member_1``, ... of fixed-size lists (classes).

    Pickled objects are refused, never loaded. Values are checked by ``wrap`` when they are read, and before it by the
    checksums of a .npz and of a .parquet that has them; .npy and .safetensors have none, so that a changed value is
    noticed only where it makes no distribution. ``max_bytes`` is how many bytes a compressed file may unfold to; by default
    one GiB, or 100 times its size where that is more.

    >>> import tempfile, numpy as np
    >>> path = tempfile.mkdtemp() + "/members.npy"
    >>> np.save(path, np.full((5, 1000, 4), 0.25, dtype=np.float16))
    >>> predictions = open_predictions(path)
    >>> predictions.shape, predictions.dtype, predictions.read(10, 12).shape
    ((5, 1000, 4), 'float16', (5, 2, 4))
    """
    source = source_file(path)
    with readable(source):
        arrays = _arrays_in(source)
        name = choose_predictions(arrays, logits=logits)
    stored, labels = arrays[name], arrays.get(LABELS)
    what = f"{source}: array {name!r}" if name else f"{source}: the array"
    first, second, classes = check_predictions(stored.shape, stored.dtype, what, problem=stored.problem)
    _check_member_axis(member_axis, stored, what)
    shape = (second, first, classes) if member_axis else (first, second, classes)
    with readable(source):
        check_unfolded(_unfolded(stored, labels), source.stat().st_size, max_bytes)
    return Predictions(source, shape, stored.dtype, logits, stored.access, stored, labels, member_axis or 0)


def _unfolded(*arrays: Stored | None) -> int:
    return sum(array.unfolded_bytes for array in arrays if array is not None)


def _check_member_axis(member_axis: int | None, stored: Stored, what: str) -> None:
    """Refuse an axis that the file cannot have; warn where nobody said which it is and it seems to be another one."""
    table = stored.access == STREAMED
    if member_axis not in (None, 0, 1) or (member_axis and table):
        raise ValueError(
            f"{what} has its members on axis 0, or with member_axis=1 (--member-axis 1) on axis 1; for Parquet leave it out, "
            f"since its rows are the inputs. Got member_axis={member_axis}."
        )
    members, rows, classes = stored.shape
    if member_axis is None and members > rows and not table:
        warnings.warn(
            f"{what} is read as (members, rows, classes): {members} members, more than its {count_text(rows, 'row')}, and "
            f"{classes} classes. If the rows come first, pass member_axis=1 (--member-axis 1); member_axis=0 confirms that "
            "members come first.",
            stacklevel=3,
        )


def check_predictions(shape: tuple[int, ...], dtype: str, what: str, /, *, problem: str = "") -> tuple[int, int, int]:
    """Members, rows and classes of an array that can hold predictions; ``problem`` is why its format says it cannot."""
    if problem:
        raise ValueError(f"{what} {problem}")
    if len(shape) != 3:
        advice = "For a single member save array[None]." if len(shape) < 3 else MANY_AXES
        raise ValueError(f"{what} must have shape (members, rows, classes); got {shape}. {advice}")
    if dtype not in NUMBERS:
        raise ValueError(f"{what} must hold one of {', '.join(NUMBERS)}; got {dtype}.")
    members, rows, classes = shape
    if members == 0:
        raise_no_members(what, shape)
    if rows == 0:
        raise ValueError(f"{what} has no rows (shape {shape}).")
    check_classes(classes, what, shape)
    return members, rows, classes


def _renormalised(probs: NDArray) -> NDArray:
    """Divide rows by their sum where it misses one by no more than bfloat16's rounding; others stay, to be refused."""
    total = probs.sum(axis=-1, keepdims=True, dtype=np.float64)
    close = np.abs(total - 1) <= row_tolerance(BFLOAT16)
    return (probs / np.where(close, total, 1.0)).astype(np.float32)


def save_predictions(path: str | os.PathLike[str], probs: Any, /, labels: Any = None, *, logits: bool = False) -> None:
    """Write member predictions (members, rows, classes), and labels (rows,), for ``open_predictions``.

    The suffix names the format: ``.npy`` (no labels), ``.npz``, ``.parquet`` or ``.safetensors``. The file appears
    whole or not at all. Precision is kept, except that bfloat16 becomes float32.

    >>> import tempfile, numpy as np
    >>> path = tempfile.mkdtemp() + "/members.parquet"
    >>> save_predictions(path, np.full((5, 2, 4), 0.25), [3, 0])
    >>> open_predictions(path).shape, read_labels(path)
    ((5, 2, 4), array([3, 0]))
    """
    target = check_file(path)
    form = format_of(target)
    values, array_kind = to_numpy(probs)
    name = "logits" if logits else "probs"
    check_predictions(values.shape, values.dtype.name, name)
    if not logits and not are_distributions(few_rows(probs)).any():
        raise ValueError(
            "none of the inspected rows is a distribution: each must be non-negative and sum to one over the last axis. "
            "For logits pass logits=True."
        )
    if array_kind.dtype == BFLOAT16 and not logits:
        values = _renormalised(values)
    truth = None if labels is None else _labels(labels, values.shape[1])
    if form == ".npy" and truth is not None:
        raise ValueError(f"{target}: a .npy file contains one array; save the labels in another file, or use .npz.")
    with atomic_file(target) as file:
        _write(file, form, name, values, truth)


def _labels(labels: Any, rows: int) -> NDArray:
    truth, _ = to_numpy(labels)
    if truth.shape != (rows,) or truth.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be {count_text(rows, 'integer')}, one class index for each row of predictions; got {truth.dtype} "
            f"of shape {truth.shape}. Turn one-hot labels into indices with argmax(-1)."
        )
    return truth


def _write(file: BinaryIO, form: str, name: str, values: NDArray, labels: NDArray | None) -> None:
    arrays = {name: values} if labels is None else {name: values, LABELS: labels}
    if form == ".npy":
        np.save(file, values, allow_pickle=False)
    elif form == ".npz":
        np.savez(file, **arrays)  # type: ignore[arg-type]
    elif form == ".safetensors":
        formats.write_safetensors(file, arrays)
    else:
        with needing("pyarrow", part="writing Parquet", extra="cli"):
            from credalens.storage.formats.parquet import write_predictions

        write_predictions(file, name, values, labels)
