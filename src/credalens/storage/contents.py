"""Every array in a file by its name, whatever the format."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from credalens.storage.formats import format_of
from credalens.storage.stored import Stored

__all__ = ["LABELS", "arrays_in"]

LABELS: Final = "labels"


def arrays_in(path: Path, /) -> dict[str, Stored]:
    """Find the arrays without reading them. Arrow is imported only for Parquet."""
    form = format_of(path)
    if form == ".parquet":
        from credalens.storage.parquet_files import parquet_arrays

        return parquet_arrays(path)
    if form == ".safetensors":
        from credalens.storage.safetensors_files import safetensors_arrays

        return safetensors_arrays(path)
    from credalens.storage.numpy_files import npy_arrays, npz_arrays

    return npy_arrays(path) if form == ".npy" else npz_arrays(path)
