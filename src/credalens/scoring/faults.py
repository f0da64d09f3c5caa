"""Which row of a file is to blame when a chunk of it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from credalens.checks import row_tolerance
from credalens.storage import Predictions

__all__ = ["blaming"]


@contextmanager
def blaming(predictions: Predictions, chunk: NDArray, start: int, /) -> Iterator[None]:
    """Word the error of a chunk that begins at row ``start`` for the first bad row of the file."""
    try:
        yield
    except ValueError as error:
        raise _blame(predictions, chunk, start, error) from error


def _blame(predictions: Predictions, chunk: NDArray, start: int, error: ValueError) -> ValueError:
    values = chunk.astype(np.float64)
    bad = _bad_logits(values) if predictions.logits else _bad_probabilities(values, row_tolerance(predictions.dtype))
    if not bad.any():
        return ValueError(f"{predictions.path}: rows {start} to {start + chunk.shape[1] - 1}: {error}")
    row = int(bad.any(axis=0).argmax())
    member = int(bad[:, row].argmax())
    fault = _fault(values[member, row], predictions)
    return ValueError(f"{predictions.path}: row {start + row}, member {member}: {fault}")


def _bad_logits(values: NDArray) -> NDArray:
    return np.isnan(values).any(axis=-1) | (values == np.inf).any(axis=-1) | np.isneginf(values).all(axis=-1)


def _bad_probabilities(values: NDArray, tolerance: float) -> NDArray:
    sums_to_one = np.abs(values.sum(axis=-1) - 1) <= tolerance  # false for NaN
    return ~(sums_to_one & (values >= 0).all(axis=-1))


def _fault(values: NDArray, predictions: Predictions) -> str:
    if predictions.logits and np.isneginf(values).all():
        return "the logits rule out every class (all -inf); at least one must be possible."
    wrong = np.isnan(values) | (values == np.inf) | (np.isneginf(values) & (not predictions.logits))
    if wrong.any():
        k = int(wrong.argmax())
        return f"class {k} is {values[k]}; every value must be finite. Look for overflow in the model."
    if values.min() < 0:
        k = int(values.argmin())
        return f"class {k} is {values[k]:.6g}; probabilities are at least 0. For logits pass --logits (logits=True)."
    tolerance = row_tolerance(predictions.dtype)
    return (
        f"it sums to {values.sum():.6g}; a row must sum to 1 within {tolerance:g} for {predictions.dtype}. "
        "For logits pass --logits (logits=True); divide counts by their sum."
    )
