"""Set-valued predictions: their classes, how many they are, and whether the true one is among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ArrayKind
from credalens.checks.arrays import as_array
from credalens.checks.bad_values import refuse_values
from credalens.checks.labels import check_samples_and_classes


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
