"""Validation at the border: arrays of any library in, clean NumPy arrays or an error that helps out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.arrays import row_tolerance


def sample_scores(x: Any, name: str, /, *, least: int = 1) -> NDArray[np.float64]:
    """One real score for each of at least ``least`` samples, in any range, infinities included."""
    array = scores(x, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one score for each sample; got shape {array.shape}. "
            "Did you pass probabilities instead of an uncertainty? Flatten batches with .ravel()."
        )
    if array.size < least:
        raise ValueError(f"{name} holds {array.size} samples; this evaluation needs at least {least}.")
    return array


def scores(x: Any, name: str, /) -> NDArray[np.float64]:
    """Real scores of any shape; NaN is refused, since it has no rank."""
    array = _read(x, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be real numbers; got {array.dtype} of shape {array.shape}.")
    array = array.astype(np.float64)
    remedy = "A missing score has no rank: find its cause, or drop the sample."
    _refuse(np.isnan(array), array, name, "NaN", remedy)
    return array


def same_samples(a: NDArray, b: NDArray, names: str, /) -> None:
    """Refuse two arrays that cannot belong to the same samples."""
    if a.shape != b.shape:
        raise ValueError(f"{names} must belong to the same samples in one order; got {a.shape} and {b.shape}.")


def paired_scores(id_a: Any, ood_a: Any, id_b: Any, ood_b: Any, /) -> list[NDArray[np.float64]]:
    """Two scores, a and b, of the same ID and the same OOD samples."""
    given = {"id_a": id_a, "ood_a": ood_a, "id_b": id_b, "ood_b": ood_b}
    checked = {name: sample_scores(x, name, least=2) for name, x in given.items()}
    same_samples(checked["id_a"], checked["id_b"], "id_a and id_b")
    same_samples(checked["ood_a"], checked["ood_b"], "ood_a and ood_b")
    return list(checked.values())


def probabilities(x: Any, name: str, /) -> NDArray[np.float64]:
    """Distributions (*samples, classes) exactly as given: refused where they are none, never rescaled."""
    array = _read(x, name)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be real numbers, probabilities; got {array.dtype}.")
    _refuse_no_classes(array, name)
    slack = row_tolerance(to_numpy(x)[1].dtype)
    array = array.astype(np.float64)
    _refuse(~np.isfinite(array), array, name, "not finite", "Probabilities are numbers from 0 to 1.")
    _refuse(array < 0, array, name, "negative", "Did you pass logits? Apply softmax over the classes first.")
    total = array.sum(axis=-1)
    remedy = f"Rows must sum to 1 within {slack:g}. Did you pass logits, or is the class axis not the last?"
    _refuse(np.abs(total - 1) > slack, total, f"row sums of {name}", "not 1", remedy)
    return array


def class_sets(x: Any, name: str, /) -> NDArray[np.bool_]:
    """Sets of classes as masks (*samples, classes), none of them empty."""
    array = truths(x, name, "True where the class is in the set")
    _refuse_no_classes(array, name)
    size = array.sum(axis=-1)
    remedy = "A prediction names at least one class; 'unknown' is all of them."
    _refuse(size == 0, size, f"set sizes of {name}", "0", remedy)
    return array


def truths(x: Any, name: str, meaning: str, /) -> NDArray[np.bool_]:
    """Booleans only: 0/1 integers could as well be labels."""
    array = _read(x, name)
    if array.dtype.kind != "b":
        raise TypeError(f"{name} must be boolean, {meaning}; got {array.dtype} of shape {array.shape}.")
    return array


def labels_of(x: Any, name: str, rows: NDArray, /) -> NDArray[np.int64]:
    """Class indices, one for each row of ``rows`` (*samples, classes)."""
    array, (*shape, classes) = _read(x, name), rows.shape
    if array.shape != tuple(shape):
        remedy = (
            "Do the rows hold several members? Give one distribution for each sample, such as wrap(members).probability."
            if array.shape == tuple(shape[1:])
            else "Turn one-hot labels into class indices with .argmax(-1)."
        )
        raise ValueError(
            f"{name} must have shape {tuple(shape)}, one label for each sample; got {array.shape}. {remedy}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, the index of the true class; got {array.dtype}.")
    remedy = f"With {classes} classes labels run from 0 to {classes - 1}."
    _refuse((array < 0) | (array >= classes), array, name, "out of range", remedy)
    return array.astype(np.int64)


def fraction(value: Any, name: str, /) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def whole_number(value: Any, name: str, /, *, least: int) -> int:
    """An integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}.")
    return int(value)


def _read(x: Any, name: str) -> NDArray:
    if np.ma.isMaskedArray(x):
        raise TypeError(f"{name} is a masked array, whose mask would be lost. Drop the masked samples first.")
    try:
        return to_numpy(x)[0]
    except ValueError as error:
        raise ValueError(f"{name} cannot be read as one array: {error}") from error
    except TypeError as error:
        raise TypeError(f"{name} cannot be read as an array: {error}") from error


def _refuse_no_classes(array: NDArray, name: str) -> None:
    if array.ndim < 2 or array.shape[-1] < 2 or array.size == 0:
        raise ValueError(
            f"{name} must have shape (*samples, classes), at least 1 sample and 2 classes; got {array.shape}."
        )


def _refuse(bad: NDArray, values: NDArray, name: str, fault: str, remedy: str) -> None:
    if bad.any():
        index = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
        first = f"the first at index {index}: {values[index]:.6g}"
        raise ValueError(f"{int(bad.sum())} of {bad.size} {name} are {fault}, {first}. {remedy}")
