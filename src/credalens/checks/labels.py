"""What is compared with the true classes: one distribution for each sample, and the labels."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import as_array
from credalens.checks.bad_rows import raise_bad_rows
from credalens.checks.bad_values import refuse_values
from credalens.checks.member_array import one_member

INDICES: Final = (
    "Labels are class indices from 0; for a model with classes_ use np.searchsorted(model.classes_, labels)."
)


def read_probabilities(x: Any, name: str, /) -> NDArray[np.float64]:
    """Distributions (*samples, classes) exactly as given: refused where they are none, never rescaled."""
    array = as_array(x, name)[0]
    check_samples_and_classes(array, name)
    member = one_member(x, name)
    if not member.are_distributions():
        raise_bad_rows(member, name, one_member=True)
    return array.astype(np.float64)


def read_labels(x: Any, name: str, rows: NDArray, /) -> NDArray[np.int64]:
    """Class indices, one for each row of ``rows`` (*samples, classes)."""
    array, (*samples, classes) = as_array(x, name, remedy=INDICES)[0], rows.shape
    if array.shape != tuple(samples):
        raise ValueError(
            f"{name} must have shape {tuple(samples)}, one label for each sample; got {array.shape}. "
            f"{_remedy_for_shape(array.shape, tuple(samples))}"
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


def _remedy_for_shape(labels: tuple[int, ...], samples: tuple[int, ...]) -> str:
    if labels == samples[1:]:
        return "Do the rows hold several members? Give one distribution for each sample, such as wrap(members).probability."
    return "Turn one-hot labels into class indices with .argmax(-1)."


def check_samples_and_classes(array: NDArray, name: str, /) -> None:
    """At least one sample and two classes."""
    if array.ndim < 2 or array.shape[-1] < 2 or array.size == 0:
        raise ValueError(
            f"{name} must have shape (*samples, classes), at least 1 sample and 2 classes; got {array.shape}."
        )
