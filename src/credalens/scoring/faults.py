"""Which row of a file is to blame when a chunk of it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import row_tolerance

__all__ = ["Origin", "PartOrigin", "blaming"]


Naming = Callable[[int, int], str]


class Origin(Protocol):
    """Where a chunk comes from, such as ``Predictions``: its file, and how its values are to be read."""

    @property
    def path(self) -> Any:
        """The file."""

    @property
    def logits(self) -> bool:
        """Whether they are logits."""

    @property
    def dtype(self) -> str:
        """The precision they are stored in."""


@dataclass(frozen=True)
class PartOrigin:
    """A part of a table."""

    path: str
    logits: bool
    dtype: str


def _plain(row: int, member: int) -> str:
    return f"row {row}, member {member}"


@contextmanager
def blaming(origin: Origin, chunk: NDArray, start: int, /, *, naming: Naming = _plain) -> Iterator[None]:
    """Word the error of a chunk that begins at row ``start`` for the first bad row of the file, called by ``naming``."""
    try:
        yield
    except ValueError as error:
        raise _blame(origin, chunk, start, naming, error) from error


def _blame(origin: Origin, chunk: NDArray, start: int, naming: Naming, error: ValueError) -> ValueError:
    values = chunk.astype(np.float64)
    bad = _bad_logits(values) if origin.logits else _bad_probabilities(values, row_tolerance(origin.dtype))
    if not bad.any():
        return ValueError(f"{origin.path}: rows {start} to {start + chunk.shape[1] - 1}: {error}")
    row = int(bad.any(axis=0).argmax())
    member = int(bad[:, row].argmax())
    fault = _fault(values[member, row], origin)
    return ValueError(f"{origin.path}: {naming(start + row, member)}: {fault}")


def _bad_logits(values: NDArray) -> NDArray:
    return np.isnan(values).any(axis=-1) | (values == np.inf).any(axis=-1) | np.isneginf(values).all(axis=-1)


def _bad_probabilities(values: NDArray, tolerance: float) -> NDArray:
    sums_to_one = np.abs(values.sum(axis=-1) - 1) <= tolerance  # false for NaN
    return ~(sums_to_one & (values >= 0).all(axis=-1))


def _fault(values: NDArray, origin: Origin) -> str:
    if origin.logits and np.isneginf(values).all():
        return "the logits rule out every class (all -inf); at least one must be possible."
    wrong = np.isnan(values) | (values == np.inf) | (np.isneginf(values) & (not origin.logits))
    if wrong.any():
        k = int(wrong.argmax())
        return f"class {k} is {values[k]}; every value must be finite. Look for overflow in the model."
    if values.min() < 0:
        k = int(values.argmin())
        return f"class {k} is {values[k]:.6g}; probabilities are at least 0. For logits pass --logits (logits=True)."
    tolerance = row_tolerance(origin.dtype)
    return (
        f"it sums to {values.sum():.6g}; a row must sum to 1 within {tolerance:g} for {origin.dtype}. "
        "For logits pass --logits (logits=True); divide counts by their sum."
    )
