"""Options: numbers, names and budgets that callers choose."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from credalens.checks.arrays import as_array


def check_base(base: float, /) -> float:
    """The logarithm's base as a float: finite and above 1."""
    if isinstance(base, bool) or not isinstance(base, int | float | np.integer | np.floating):
        raise TypeError(f"base must be a number above 1, such as 2 (bits) or math.e (nats); got {base!r}.")
    if not (math.isfinite(base) and base > 1):
        raise ValueError(f"base must be finite and above 1, such as 2 (bits) or math.e (nats); got {base!r}.")
    return float(base)


def check_threads(threads: int | None, /) -> int | None:
    """A positive number of threads, or None for all cores."""
    return None if threads is None else check_count(threads, "threads")


def check_count(value: Any, name: str, /, *, least: int = 1) -> int:
    """An integer of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer of at least {least}; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}.")
    return int(value)


def check_fraction(value: Any, name: str, /) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return float(value)


def check_budget(max_nodes: int, tolerance: float, /) -> tuple[int, float]:
    """The budget of a search for the lowest entropy: nodes, and the gap in bits at which it may end."""
    return check_count(max_nodes, "max_nodes"), check_tolerance(tolerance)


def check_tolerance(tolerance: float, /) -> float:
    """A finite tolerance of at least zero, as a float: kernels would be compiled once more for another type."""
    if not isinstance(tolerance, int | float | np.integer | np.floating) or isinstance(tolerance, bool):
        raise TypeError(f"tolerance must be a number of bits, at least 0; got {tolerance!r}.")
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance must be finite and at least 0; got {tolerance!r}.")
    return float(tolerance)


def check_few_classes(classes: int, most: int, what: str) -> None:
    """Refuse work that is exponential in too many classes."""
    if classes > most:
        raise ValueError(
            f"{what} enumerates cases that grow exponentially and takes at most {most} classes; got {classes}. "
            "Merge classes first, for example with approximate_intervals."
        )


def check_choice(value: str, choices: Iterable[str], name: str) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in tuple(choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


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
