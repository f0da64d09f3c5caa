"""Parquet files as Hugging Face writes them: encoded images in a column, labels in another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import DataSet, split_names
from credalens_paper.data.image_set import ImageSource
from credalens_paper.data.pixels import Encoded

_FOLDERS: Final = ("", "data", "default", "plain_text", "cropped_digits", "cifar10", "cifar100")
_IMAGES: Final = ("image", "img")
_LABELS: Final = ("label", "fine_label", "labels")


def open_parquet(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`test-00000-of-00001.parquet` and its like, directly in the folder or in the usual folders below."""
    paths = _files(root, split)
    if not paths:
        return None
    from pyarrow.parquet import ParquetFile

    image, label = _columns(paths[0])
    columns = [ParquetFile(path).read([label])[label].to_numpy() for path in paths]
    labels = np.concatenate(columns).astype(np.int64)
    class_names = _class_names(paths[0], label) or data_set.class_numbers
    if len(class_names) != data_set.classes:
        raise ValueError(f"{paths[0]} has {len(class_names)} classes, but {data_set.title} has {data_set.classes}")
    return ImageSource(data_set.name, _ImageColumn(paths, image), labels, class_names)


def _files(root: Path, split: str) -> list[Path]:
    for folder in _FOLDERS:
        for name in split_names(split):
            paths = sorted([*(root / folder).glob(f"{name}-*.parquet"), *(root / folder).glob(f"{name}.parquet")])
            if paths:
                return paths
    return []


def _columns(path: Path) -> tuple[str, str]:
    from pyarrow.parquet import read_schema

    names = read_schema(path).names
    image = next((name for name in _IMAGES if name in names), None)
    label = next((name for name in _LABELS if name in names), None)
    if image is None or label is None:
        raise ValueError(f"{path} needs a column of {_IMAGES} and one of {_LABELS}; it has {names}")
    return image, label


def _class_names(path: Path, label: str) -> tuple[str, ...]:
    from pyarrow.parquet import read_schema

    features = json.loads((read_schema(path).metadata or {}).get(b"huggingface", b"{}"))
    return tuple(features.get("info", {}).get("features", {}).get(label, {}).get("names", ()))


class _ImageColumn:
    """Encoded images by index over all files; only the row groups that hold them are read."""

    def __init__(self, paths: list[Path], column: str) -> None:
        from pyarrow.dataset import dataset

        self.column = column
        files = dataset([str(path) for path in paths]).get_fragments()
        self.groups = [group for file in files for group in file.split_by_row_group()]
        counts = [group.row_groups[0].num_rows for group in self.groups]
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

    def __call__(self, indices: NDArray[np.intp]) -> list[Encoded]:
        encoded: list[Encoded] = [b""] * len(indices)
        groups = np.searchsorted(self.starts, indices, side="right") - 1
        for group in np.unique(groups):
            positions = np.flatnonzero(groups == group)
            rows = self._read(self.groups[group], indices[positions] - self.starts[group])
            for position, row in zip(positions, rows, strict=True):
                encoded[position] = row
        return encoded

    def _read(self, group: Any, rows: NDArray[np.intp]) -> list[bytes]:
        values = group.to_table(columns=[self.column])[self.column].take(rows).to_pylist()
        return [self._bytes(value, group.path) for value in values]

    def _bytes(self, value: Any, path: str) -> bytes:
        encoded = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(encoded, bytes):
            raise ValueError(f"column {self.column!r} of {path} holds no encoded images but {type(encoded).__name__}")
        return encoded
