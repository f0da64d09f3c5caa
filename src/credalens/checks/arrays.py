"""Arrays of callers: real numbers, labels, scores and sets; errors say how many values are wrong, the first, and what to do."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind, array_kind_of, in_own_library, to_numpy
from credalens.checks.options import count_text, escaped_names

# How far a row of probabilities may be from summing to one. A float64 array often holds what a float32 softmax gave.
ROW_TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-5, "float64": 1e-5}
REAL_DTYPES = ("float16", "bfloat16", "float32", "float64", "float96", "float128", "longdouble", "int", "uint", "bool")
Result = TypeVar("Result")


def as_array(
    x: Any, name: str, *, remedy: str = "Convert it to float32 or float64 first."
) -> tuple[NDArray, ArrayKind]:
    """``x`` as a numeric NumPy array, or an error that says what it was."""
    array, array_kind = _read(to_numpy, x, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype} from {type(x).__name__}. {remedy}")
    return array, array_kind


def read_array(x: Any, name: str) -> Any:
    """``x`` in its own library, or as a NumPy array if it has none; of real numbers in any case."""
    array = _read(in_own_library, x, name)
    dtype = _read(array_kind_of, array, name).dtype
    if not dtype.startswith(REAL_DTYPES):
        raise TypeError(f"{name} must hold real numbers; got dtype {dtype}. Convert it to float32 or float64 first.")
    return array


def _read(read: Callable[[Any], Result], x: Any, name: str) -> Result:
    """Call ``read`` with ``x``; errors say what it was."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and masks are not understood; select the rows you want first.")
    if isinstance(x, str | bytes | os.PathLike):
        raise TypeError(
            f"{name} must be an array of numbers; got {type(x).__name__} {x!r}. If that is a file, read it first."
        )
    if isinstance(x, Iterator):
        raise TypeError(
            f"{name} must be an array of numbers; got a {type(x).__name__}. Make one of it: np.stack(list(...))."
        )
    try:
        return read(x)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a rectangular array of numbers; got {type(x).__name__} that does not form one ({error}). "
            "Give every row the same number of entries."
        ) from error
    except (TypeError, RuntimeError, BufferError) as error:  # BufferError is the array standard's
        raise TypeError(
            f"{name} must be an array of numbers; got {type(x).__name__}, whose values cannot be read ({error}). "
            "Give a dense array of values in float64, float32, float16 or bfloat16."
        ) from error


def check_classes(classes: int, name: str, shape: tuple[int, ...]) -> None:
    """At least two classes."""
    if classes < 2:
        raise ValueError(
            f"{name} needs at least two classes on its last axis; got {classes} (shape {shape}). "
            "For a binary classifier stack both columns, (1 - p, p)."
        )


def row_tolerance(dtype: str, /) -> float:
    """How far from one a row's sum may be for an array of this dtype."""
    return ROW_TOLERANCE.get(dtype, ROW_TOLERANCE["float64"])


def index_in(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where a row, counted over the whole batch, is in it; () for one without a batch."""
    return tuple(int(i) for i in np.unravel_index(flat, shape))


def refuse_values(bad: NDArray, values: NDArray, name: str, fault: str, remedy: str) -> None:
    """Raise an error for the ``values`` that are ``bad``, if there are any."""
    if bad.any():
        where = index_in(int(bad.argmax()), bad.shape)
        raise ValueError(
            f"{int(bad.sum())} of {bad.size} {name} are {fault}, the first at index {where}: {values[where]:.6g}. {remedy}"
        )


INDICES: Final = (
    "Labels are class indices from 0; for a model with classes_ use np.searchsorted(model.classes_, labels)."
)


def read_labels(x: Any, name: str, rows: NDArray, /) -> NDArray[np.int64]:
    """Class indices, one for each row of ``rows`` (*samples, classes)."""
    array, (*samples, classes) = as_array(x, name, remedy=INDICES)[0], rows.shape
    if array.shape != tuple(samples):
        remedy = "Turn one-hot labels into class indices with .argmax(-1)."
        if array.shape == tuple(samples[1:]):
            remedy = (
                "Do the rows hold several members? Give one distribution for each sample, "
                "such as wrap(members).probability."
            )
        raise ValueError(
            f"{name} must have shape {tuple(samples)}, one label for each sample; got {array.shape}. {remedy}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, the index of the true class; got {array.dtype}. {INDICES}")
    remedy = f"With {classes} classes labels run from 0 to {classes - 1}. {INDICES}"
    refuse_values((array < 0) | (array >= classes), array, name, "out of range", remedy)
    return array.astype(np.int64)


def warn_shifted_labels(labels: NDArray[np.int64], predicted: NDArray[np.int64], /, *, stacklevel: int) -> None:
    """Warn of labels that seem to begin at 1: none is 0, and one less is right more often than chance explains (3 sigma)."""
    right, right_if_shifted = int((predicted == labels).sum()), int((predicted == labels - 1).sum())
    surely_more = right_if_shifted - right > 3 * (right + right_if_shifted) ** 0.5
    if surely_more and not (labels == 0).any():
        warnings.warn(
            f"do the labels begin at 1? None is 0; {right} of {labels.size} predictions equal the label, and "
            f"{right_if_shifted} equal the label less one. If so, pass labels - 1. {INDICES}",
            stacklevel=stacklevel,
        )


def check_label_kind(labels: Any, classes: NDArray, /) -> None:
    """Refuse text where a classifier knows its classes as numbers, and numbers where it knows them as text."""
    first = next(iter(np.asarray(labels).ravel()), classes[0])
    text, remedy = isinstance(first, str), "Pass names instead of positions: model.classes_[labels]."
    if text == isinstance(classes[0], str):
        return
    if text:
        remedy = (
            "The trees of a forest number its classes: wrap the forest itself, or pass "
            "np.searchsorted(forest.classes_, labels)."
        )
    kinds = ("text", "numbers") if text else ("numbers", "text")
    raise ValueError(
        f"labels are {kinds[0]}, such as {first}; the model knows its classes as {kinds[1]}, such as {classes[0]}. {remedy}"
    )


def check_samples_and_classes(array: NDArray, name: str, /) -> None:
    """At least one sample and two classes."""
    if array.ndim < 2 or array.shape[-1] < 2 or array.size == 0:
        raise ValueError(
            f"{name} must have shape (*samples, classes), at least 1 sample and 2 classes; got {array.shape}."
        )


def read_scores(x: Any, name: str, /) -> NDArray[np.float64]:
    """Real scores of any shape; NaN is refused, since it has no rank."""
    array = as_array(x, name)[0].astype(np.float64)
    remedy = "A missing score has no rank: find its cause, or drop the sample."
    refuse_values(np.isnan(array), array, name, "NaN", remedy)
    return array


def read_sample_scores(x: Any, name: str, /, *, least: int = 1) -> NDArray[np.float64]:
    """One real score for each of at least ``least`` samples."""
    array = read_scores(x, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one score for each sample; got shape {array.shape}. "
            "Did you pass probabilities instead of an uncertainty? Flatten batches with .ravel()."
        )
    if array.size < least:
        raise ValueError(f"{name} holds {count_text(array.size, 'sample')}; this evaluation needs at least {least}.")
    return array


def read_paired_scores(id_a: Any, ood_a: Any, id_b: Any, ood_b: Any, /) -> list[NDArray[np.float64]]:
    """Two scores, a and b, of the same ID and the same OOD samples."""
    given = {"id_a": id_a, "ood_a": ood_a, "id_b": id_b, "ood_b": ood_b}
    scores = {name: read_sample_scores(x, name, least=2) for name, x in given.items()}
    check_same_samples(scores["id_a"], scores["id_b"], "id_a and id_b")
    check_same_samples(scores["ood_a"], scores["ood_b"], "ood_a and ood_b")
    return list(scores.values())


def check_same_samples(a: NDArray, b: NDArray, names: str, /) -> None:
    """Refuse two arrays that cannot belong to the same samples."""
    if a.shape != b.shape:
        raise ValueError(f"{names} must belong to the same samples in one order; got {a.shape} and {b.shape}.")


def read_sets(size: Any, correct: Any, /) -> tuple[NDArray[np.float64], NDArray[np.bool_], ArrayKind]:
    """Whole numbers of at least one, and as many truths, or one of either for all; results go to the library of either."""
    sizes, array_kind = as_array(size, "size")
    truths, other = as_array(correct, "correct")
    if sizes.dtype.kind == "b":
        raise TypeError(
            "size holds the number of classes in each set; got booleans. Sum a mask over its classes first."
        )
    if sizes.ndim and truths.ndim and sizes.shape != truths.shape:
        raise ValueError(
            f"size and correct must have the same shape, one entry for each set; got {sizes.shape} and {truths.shape}."
        )
    bad = ~((sizes >= 1) & (sizes < np.inf) & (sizes == np.floor(sizes)))
    remedy = "A set holds at least one class and a whole number of them; an empty decision has no utility."
    refuse_values(bad, sizes, "values of size", "no number of classes", remedy)
    remedy = "It says whether the set holds the true class."
    refuse_values(~((truths == 0) | (truths == 1)), truths, "values of correct", "neither true nor false", remedy)
    return sizes.astype(np.float64), truths.astype(bool), other if array_kind.library == "numpy" else array_kind


def read_class_sets(x: Any, name: str, /) -> NDArray[np.bool_]:
    """Sets of classes as masks (*samples, classes), none of them empty."""
    masks = read_truths(x, name, "True where the class is in the set")
    check_samples_and_classes(masks, name)
    size = masks.sum(axis=-1)
    remedy = "A prediction names at least one class; 'unknown' is all of them."
    refuse_values(size == 0, size, f"set sizes of {name}", "0", remedy)
    return masks


def read_truths(x: Any, name: str, meaning: str, /) -> NDArray[np.bool_]:
    """Booleans only: 0/1 integers could as well be labels."""
    array, _ = as_array(x, name)
    if array.dtype.kind != "b":
        raise TypeError(f"{name} must be boolean, {meaning}; got {array.dtype} of shape {array.shape}.")
    return array


def check_subset(subset: Any, classes: int, /) -> list[int]:
    """Distinct class indices."""
    array, _ = as_array(subset, "subset")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(
            f"subset must hold class indices, integers from 0 to {classes - 1}; got {array.dtype} ({subset!r}). "
            "For a mask over the classes pass np.flatnonzero(mask)."
        )
    chosen = [int(k) for k in array.reshape(-1)]
    if array.ndim > 1 or len(set(chosen)) != len(chosen) or not all(0 <= k < classes for k in chosen):
        raise ValueError(f"subset must hold distinct class indices from 0 to {classes - 1}; got {subset!r}.")
    return chosen


def read_columns(groups: Mapping[str, Any] | None, rows: int, /) -> dict[str, NDArray[np.object_]]:
    """Columns of ``rows`` values each, as text without control characters."""
    if groups is not None and not isinstance(groups, Mapping):
        raise TypeError(
            f"groups must map names of columns to values, such as {{'site': values}}; got {type(groups).__name__}."
        )
    given = escaped_names(groups or {}, "a column of groups")
    columns = {name: np.asarray(of, object if isinstance(of, list | tuple) else None) for name, of in given.items()}
    for name, values in columns.items():
        if values.shape != (rows,):
            raise ValueError(
                f"groups: the column {name!r} must hold one value for each of the {rows} inputs; got shape "
                f"{values.shape} (--groups)."
            )
    return {name: _texts(values) for name, values in columns.items()}


def _texts(values: NDArray) -> NDArray[np.object_]:
    """Each value as text without control characters."""
    plain = values if values.dtype.kind == "O" else values.astype(np.str_)
    texts = [value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value) for value in plain]
    safe = dict(zip(dict.fromkeys(texts), escaped_names(dict.fromkeys(texts), "a group"), strict=True))
    return np.array([safe[text] for text in texts], object)
