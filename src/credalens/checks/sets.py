"""Set-valued predictions: how many classes each holds, and whether the true one is among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import Origin
from credalens.checks.arrays import as_array, index_in

__all__ = ["read_sets"]


def read_sets(size: Any, correct: Any, /) -> tuple[NDArray[np.float64], NDArray[np.bool_], Origin]:
    """Whole numbers of at least one, and as many truths, or one of either for all; results go to the library of either."""
    sizes, origin = as_array(size, "size")
    truths, other = as_array(correct, "correct")
    if sizes.dtype.kind == "b":
        raise TypeError(
            "size holds the number of classes in each set; got booleans. Sum a mask over its classes first."
        )
    if sizes.ndim and truths.ndim and sizes.shape != truths.shape:
        raise ValueError(
            f"size and correct must have the same shape, one entry for each set; got {sizes.shape} and {truths.shape}."
        )
    remedy = "every set needs at least one class and a whole number of them; an empty decision has no utility."
    _refuse(~((sizes >= 1) & (sizes < np.inf) & (sizes == np.floor(sizes))), sizes, "size", remedy)
    _refuse(~((truths == 0) | (truths == 1)), truths, "correct", "it says whether the set holds the true class.")
    return sizes.astype(np.float64), truths.astype(bool), other if origin.library == "numpy" else origin


def _refuse(bad: NDArray, values: NDArray, name: str, remedy: str) -> None:
    if bad.any():
        where = index_in(int(bad.argmax()), bad.shape)
        raise ValueError(
            f"{int(bad.sum())} of {bad.size} values of {name} cannot be; the first is {values[where]:g} at index {where}: "
            f"{remedy}"
        )
