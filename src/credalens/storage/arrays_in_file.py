"""Every array in a file by its name, whatever the format, and which of them is the predictions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from credalens.checks.packages import needing
from credalens.storage.formats.stored_array import Stored
from credalens.storage.formats.suffixes import UnsuitableError, format_of

LABELS: Final = "labels"


def arrays_in(path: Path, /) -> dict[str, Stored]:
    """Find the arrays without reading them. Arrow is imported only for Parquet."""
    form = format_of(path)
    if form == ".parquet":
        with needing("pyarrow", part="reading Parquet", extra="cli"):
            from credalens.storage.formats.parquet import parquet_arrays

        return parquet_arrays(path)
    if form == ".safetensors":
        from credalens.storage.formats.safetensors import safetensors_arrays

        return safetensors_arrays(path)
    from credalens.storage.formats.npy import npy_arrays, npz_arrays

    return npy_arrays(path) if form == ".npy" else npz_arrays(path)


def choose_predictions(names: Iterable[str], /, *, logits: bool) -> str:
    """The name of the predictions among arrays: ``probs`` (or ``logits``, with ``logits=True``), or the only one."""
    wanted = "logits" if logits else "probs"
    arrays = [name for name in names if name != LABELS]
    if wanted in arrays:
        return wanted
    if arrays == ["logits"]:
        raise UnsuitableError("holds logits, not probabilities; say so with logits=True (--logits).")
    if arrays == ["probs"]:
        raise UnsuitableError("holds probabilities, not logits; leave out logits=True (--logits).")
    if len(arrays) != 1:
        raise UnsuitableError(
            f"predictions are looked for under {wanted!r}, or in the only array; found "
            f"{', '.join(map(repr, names)) or 'none'}. "
            "credalens.storage.save_predictions(path, probs, labels) writes a file as it must be."
        )
    return arrays[0]
