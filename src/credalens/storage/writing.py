"""Saving member predictions, so that the next program reads them back by rows."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.doubtful_members import are_distributions, few_rows
from credalens.checks.options import count_text, needing
from credalens.storage.atomic import atomic_file, check_file
from credalens.storage.formats.files import format_of
from credalens.storage.formats.stored_array import BFLOAT16
from credalens.storage.reading import LABELS, check_predictions, renormalised


def save_predictions(path: str | os.PathLike[str], probs: Any, /, labels: Any = None, *, logits: bool = False) -> None:
    """Write member predictions (members, rows, classes), and labels (rows,), for ``open_predictions``.

    The suffix names the format: ``.npy`` (no labels), ``.npz``, ``.parquet`` or ``.safetensors``. The file appears
    whole or not at all. Precision is kept, except that bfloat16 becomes float32.

    >>> import tempfile, numpy as np
    >>> path = tempfile.mkdtemp() + "/members.parquet"
    >>> save_predictions(path, np.full((5, 2, 4), 0.25), [3, 0])
    >>> from credalens.storage import open_predictions, read_labels
    >>> open_predictions(path).shape, read_labels(path)
    ((5, 2, 4), array([3, 0]))
    """
    target = check_file(path)
    form = format_of(target)
    values = _values(probs, logits)
    truth = None if labels is None else _labels(labels, values.shape[1])
    if form == ".npy" and truth is not None:
        raise ValueError(f"{target}: a .npy file contains one array; save the labels in another file, or use .npz.")
    with atomic_file(target) as file:
        _write(file, form, "logits" if logits else "probs", values, truth)


def _values(probs: Any, logits: bool) -> NDArray:
    values, array_kind = to_numpy(probs)
    check_predictions(values.shape, values.dtype.name, "logits" if logits else "probs")
    if not logits and values.size and not are_distributions(few_rows(probs)).any():
        raise ValueError(
            "none of the inspected rows is a distribution: each must be non-negative and sum to one over the last axis. "
            "For logits pass logits=True."
        )
    return renormalised(values) if array_kind.dtype == BFLOAT16 and not logits else values


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
        from credalens.storage.formats.safetensors import write_safetensors

        write_safetensors(file, arrays)
    else:
        with needing("pyarrow", part="writing Parquet", extra="cli"):
            from credalens.storage.formats.parquet import write_predictions

        write_predictions(file, name, values, labels)
