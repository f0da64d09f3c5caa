"""Member predictions in files, read by rows: .npy, .npz, .parquet and .safetensors.

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
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import check_classes, row_tolerance
from credalens.checks.members import raise_no_members
from credalens.checks.options import count_text, needing
from credalens.storage.formats.files import UnsuitableError, check_unfolded, format_of, readable, source_file
from credalens.storage.formats.stored_array import BFLOAT16, STREAMED, Stored

LABELS: Final = "labels"


def arrays_in(path: Path, /) -> dict[str, Stored]:
    """Find the arrays without reading them. Arrow is imported only for Parquet."""
    form = format_of(path)
    if form == ".parquet":
        with needing("pyarrow", part="reading Parquet", extra="cli"):
            from credalens.storage.formats.parquet import parquet_arrays

        return parquet_arrays(path)
    if form == ".safetensors":
        from credalens.storage.formats.safetensors import safetensors_arrays

        return safetensors_arrays(path)
    from credalens.storage.formats.npy import npy_arrays, npz_arrays

    return npy_arrays(path) if form == ".npy" else npz_arrays(path)


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


NUMBERS = ("float16", BFLOAT16, "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
"""What all formats can hold: probabilities and logits, and votes of members that are certain, which are zeros and ones."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """What ``open_predictions`` returns: predictions (members, rows, classes) in a file; ``read`` reads some of its rows.

    - ``dtype``: the precision they are stored in.
    - ``logits``: whether they are logits, for ``wrap_logits``, or probabilities, for ``wrap``.
    - ``access``: "memory-mapped", "streamed", or "loaded whole" (a compressed .npz cannot be read in part).
    - ``has_labels``: whether the same file holds labels, for ``read_labels``.
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
        """Whether the file holds labels."""
        return self._labels is not None

    @property
    def members(self) -> int:
        """How many members predicted."""
        return self.shape[0]

    @property
    def rows(self) -> int:
        """How many inputs they predicted."""
        return self.shape[1]

    @property
    def classes(self) -> int:
        """How many classes they chose from."""
        return self.shape[2]

    def read(self, start: int = 0, stop: int | None = None, /) -> NDArray:
        """Predictions (members, stop - start, classes) for rows start..stop, in memory; all rows by default.

        bfloat16, which NumPy does not have, comes as float32, its probabilities divided by their sum, since they
        miss one by more than float32 could.
        """
        stop = self.rows if stop is None else stop
        if not 0 <= start <= stop <= self.rows:
            raise ValueError(f"{self.path} has rows 0 to {self.rows}; cannot read rows {start} to {stop}.")
        values = (
            self._stored.read(start, stop, 0).swapaxes(0, 1) if self.member_axis else self._stored.read(start, stop)
        )
        return renormalised(values) if self.dtype == BFLOAT16 and not self.logits else values

    def read_labels(self, start: int, stop: int, /) -> NDArray[np.int64]:
        """The true classes of rows start..stop, from the same file."""
        if self._labels is None:
            raise ValueError(f"{self.path} holds no labels.")
        with readable(self.path):
            check_rows(self._labels.rows, self.rows)
            return checked_labels(self._labels.read(start, stop), self.classes, start=start)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent to another process, the file is opened there."""
        allowed = _unfolded_bytes(self._stored, self._labels)
        options = {"logits": self.logits, "max_bytes": allowed, "member_axis": self.member_axis}
        return partial(open_predictions, **options), (self.path,)  # type: ignore[arg-type]

    def chunks(self, rows: int, /) -> Iterator[NDArray]:
        """All predictions in order, at most ``rows`` rows at a time."""
        if rows < 1:
            raise ValueError(f"a chunk needs at least 1 row; got {rows}.")
        for start in range(0, self.rows, rows):
            yield self.read(start, min(start + rows, self.rows))


def open_predictions(
    path: str | os.PathLike[str],
    /,
    *,
    logits: bool = False,
    max_bytes: int | None = None,
    member_axis: int | None = None,
) -> Predictions:
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
        arrays = arrays_in(source)
        name = choose_predictions(arrays, logits=logits)
    stored, labels = arrays[name], arrays.get(LABELS)
    what = f"{source}: array {name!r}" if name else f"{source}: the array"
    first, second, classes = check_predictions(stored.shape, stored.dtype, what, problem=stored.problem)
    _check_member_axis(member_axis, stored, what)
    shape = (second, first, classes) if member_axis else (first, second, classes)
    with readable(source):
        check_unfolded(_unfolded_bytes(stored, labels), source.stat().st_size, max_bytes)
    return Predictions(source, shape, stored.dtype, logits, stored.access, stored, labels, member_axis or 0)


def _unfolded_bytes(*arrays: Stored | None) -> int:
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
        raise ValueError(f"{what} must have shape (members, rows, classes); got {shape}. {_instead(len(shape))}")
    if dtype not in NUMBERS:
        raise ValueError(f"{what} must hold one of {', '.join(NUMBERS)}; got {dtype}.")
    members, rows, classes = shape
    if members == 0:
        raise_no_members(what, shape)
    if rows == 0:
        raise ValueError(f"{what} has no rows (shape {shape}).")
    check_classes(classes, what, shape)
    return members, rows, classes


def _instead(axes: int) -> str:
    """What to save in place of an array with so many axes."""
    if axes < 3:
        return "For a single member save array[None]."
    return (
        "Rows are samples of their own, which the pixels of an image are not: save one prediction of each image, such as its "
        "mean or worst pixel; if every entry really is a sample of its own, give them one axis, "
        "array.reshape(members, -1, classes)."
    )


def renormalised(probs: NDArray, /) -> NDArray:
    """Divide rows by their sum where it misses one by no more than bfloat16's rounding; others stay, to be refused."""
    total = probs.sum(axis=-1, keepdims=True, dtype=np.float64)
    close = np.abs(total - 1) <= row_tolerance(BFLOAT16)
    return (probs / np.where(close, total, 1.0)).astype(np.float32)
