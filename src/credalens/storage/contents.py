"""Every array in a file by its name, whatever the format."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from credalens.storage.formats.stored import Stored
from credalens.storage.formats.suffixes import format_of

__all__ = ["LABELS", "arrays_in"]

LABELS: Final = "labels"


def arrays_in(path: Path, /) -> dict[str, Stored]:
    """Find the arrays without reading them. Arrow is imported only for Parquet."""
    form = format_of(path)
    if form == ".parquet":
        from credalens.storage.formats.parquet import parquet_arrays

        return parquet_arrays(path)
    if form == ".safetensors":
        from credalens.storage.formats.safetensors import safetensors_arrays

        return safetensors_arrays(path)
    from credalens.storage.formats.npy import npy_arrays, npz_arrays

    return npy_arrays(path) if form == ".npy" else npz_arrays(path)
