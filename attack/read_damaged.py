"""Read files in a process of its own with bounded memory: ``python -m attack.read_damaged BYTES FILE ...``.

Two lines of JSON for each file: what the library makes of it, and what the package of the format makes of it. Where the
process dies, the lines that are missing say at which file and by whose doing.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from credalens.storage import open_predictions, read_labels

MAX_BYTES = 64 << 20  # what a compressed file may unfold to


def digest(array: Any) -> str:
    """Of shape, dtype and content, in the machine's byte order."""
    values = np.asarray(array)
    values = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("=")))
    return hashlib.sha256(f"{values.shape} {values.dtype} ".encode() + values.tobytes()).hexdigest()


def ours(path: Path) -> dict[str, Any]:
    """What the library reads, or how it refuses."""
    try:
        predictions = open_predictions(path, max_bytes=MAX_BYTES)
        content = [digest(predictions.read())]
        if predictions.has_labels:
            content.append(digest(read_labels(path, max_bytes=MAX_BYTES)))
    except Exception as error:
        fitting = isinstance(error, ValueError | OSError) and path.name in str(error)
        return {"error": f"{type(error).__name__}: {error}", "fitting": fitting}
    return {"content": content}


def reference(path: Path) -> list[str] | None:
    """What NumPy, pyarrow or safetensors read; None where they refuse."""
    try:
        arrays = READERS[path.suffix](path)
        probs = arrays.pop("probs", None)
        labels = arrays.pop("labels", arrays.pop("label", None))
        if probs is None:
            [probs] = arrays.values()
        return [digest(probs)] + ([] if labels is None else [digest(labels.astype(np.int64))])
    except BaseException:
        return None


def _npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    arrays = {}
    for name in table.column_names:
        column, shape = table[name].combine_chunks(), [len(table)]
        while hasattr(column.type, "list_size"):
            shape.append(column.type.list_size)
            column = column.flatten()
        values = column.to_numpy(zero_copy_only=False).reshape(shape)
        arrays[name] = values.transpose(1, 0, 2) if values.ndim == 3 else values
    return arrays


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return dict(load_file(path))


READERS: dict[str, Any] = {
    ".npy": lambda path: {"probs": np.load(path, allow_pickle=False)},
    ".npz": _npz,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}


def main() -> None:
    """The first file must be a good one: it loads what reading needs before memory is bounded."""
    more_bytes, *names = sys.argv[1:]
    ours(Path(names[0]))
    reference(Path(names[0]))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + int(more_bytes)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for path in map(Path, names):
        print(json.dumps({"file": path.name, "ours": ours(path)}), flush=True)
        print(json.dumps({"file": path.name, "reference": reference(path)}), flush=True)


if __name__ == "__main__":
    main()
