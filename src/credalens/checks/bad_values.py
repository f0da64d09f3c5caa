"""Errors about single values: how many are bad, the first one with its index, what to do."""

from __future__ import annotations

from numpy.typing import NDArray

from credalens.checks.arrays import index_in


def refuse_values(bad: NDArray, values: NDArray, name: str, fault: str, remedy: str) -> None:
    """Raise an error for the ``values`` that are ``bad``, if there are any."""
    if bad.any():
        where = index_in(int(bad.argmax()), bad.shape)
        raise ValueError(
            f"{int(bad.sum())} of {bad.size} {name} are {fault}, the first at index {where}: {values[where]:.6g}. {remedy}"
        )
