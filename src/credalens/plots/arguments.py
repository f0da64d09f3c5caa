"""What the figure functions ask of their arrays, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import as_array
from credalens.checks.bad_values import refuse_values
from credalens.checks.control_characters import escaped
from credalens.checks.counted import count_text
from credalens.checks.member_array import read_distributions


def as_numbers(values: Any, what: str, /) -> NDArray[np.float64]:
    """``values`` as a finite, non-empty float64 array of one dimension."""
    array = as_array(values, what)[0].astype(np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{what} must have shape (n,) with n >= 1, got shape {array.shape}.")
    refuse_values(~np.isfinite(array), array, what, "not finite", "A figure shows finite numbers only.")
    return array


def as_members(members: Any, /) -> NDArray[np.float64]:
    """One input's member distributions, (members, classes), each renormalised in float64."""
    read = read_distributions(members, name="members")
    if read.batch:
        raise ValueError(
            f"a figure shows one input, members of shape (members, classes); got a batch {read.batch} of them. "
            "Choose one, such as members[:, 0]."
        )
    return read.array[:, 0]


def as_names(names: Sequence[str], count: int, what: str, /) -> list[str]:
    """``count`` names as strings."""
    if isinstance(names, str) or len(names) != count:
        came = f"the single string {names!r}" if isinstance(names, str) else count_text(len(names), "name")
        raise ValueError(f"{what} must be a sequence of {count_text(count, 'name')}, got {came}.")
    return [as_text(name) for name in names]


def as_text(name: Any, /) -> str:
    """A name as a string without characters that an SVG must not hold; line breaks are kept."""
    return escaped(name, keep="\n")


def as_mapping(named: Any, what: str, holds: str, /) -> dict[str, Any]:
    """A non-empty mapping from names, as strings, to what a figure draws for them."""
    if not isinstance(named, Mapping):
        raise TypeError(f"{what} must be a mapping name -> {holds}, got {type(named).__name__}.")
    texts = {str(name): value for name, value in named.items()}
    if not texts or len(texts) < len(named):
        fault = "two names read the same" if texts else "it is empty"
        raise ValueError(f"{what} needs one name or more, each its own -> {holds}; {fault}: {list(named)}.")
    return texts


def as_pair(
    pair: Any, what: str, parts: tuple[str, str], /, *, read: Callable[[Any, str], NDArray[np.float64]] = as_numbers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two arrays of one length, such as the x and y of a curve, each checked by ``read``."""
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"{what} must be a pair ({parts[0]}, {parts[1]}), got {type(pair).__name__}.")
    first, second = (read(part, f"{what}: {name}") for part, name in zip(pair, parts, strict=True))
    if len(first) != len(second):
        raise ValueError(f"{what}: {parts[0]} and {parts[1]} must have one length, got {len(first)} and {len(second)}.")
    return first, second
