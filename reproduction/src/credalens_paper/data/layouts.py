"""Layouts in which any data set may lie: folders of image files, Parquet files of Hugging Face, packed mosaics.

A packed file `cifar10_train.npz`, perhaps in numbered shards `cifar10_train.0.npz`, ..., holds tiles of lossless WebP
mosaics: `blob` (the mosaics' bytes one after another), `offsets` (where each begins, and the end), `labels`,
`tile` = (rows, columns, height, width, channels) and, if known, `names` of the classes.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import DataSet, split_names
from credalens_paper.data.image_set import Encoded, ImageSource, decode_images

_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp"})
_FOLDERS: Final = ("", "data", "default", "plain_text", "cropped_digits", "cifar10", "cifar100")
_IMAGES: Final = ("image", "img")
_LABELS: Final = ("label", "fine_label", "labels")


def open_class_folders(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`<split>/<class>/*.png`, also with `images/` below the class; a set with one split may leave its name out."""
    parents = [root / name for name in split_names(split)]
    if data_set.splits == (split,):
        parents.append(root)
    for parent in (parent for parent in parents if parent.is_dir()):
        folders = sorted(folder for folder in parent.iterdir() if folder.is_dir())
        files = {folder.name: found for folder in folders if (found := _image_files(folder))}
        if files and len(files) != data_set.classes:
            raise ValueError(
                f"{parent} has {len(files)} folders with images, but {data_set.title} has {data_set.classes} classes; "
                f"is the copy complete, and is it this data set?"
            )
        if files:
            labels = np.repeat(np.arange(len(files)), [len(paths) for paths in files.values()])
            return _open_files(data_set, [path for paths in files.values() for path in paths], labels, tuple(files))
    return None


def _image_files(folder: Path) -> list[Path]:
    inside = folder / "images" if (folder / "images").is_dir() else folder
    return sorted(path for path in inside.iterdir() if path.suffix.lower() in _SUFFIXES)


def open_tiny_imagenet(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`val/images/*.JPEG` with `val/val_annotations.txt`: file, class, box; classes in the order of their names."""
    listing, images, names = root / "val" / "val_annotations.txt", root / "val" / "images", root / "wnids.txt"
    if split != "test" or not listing.is_file() or not images.is_dir():
        return None
    lines = [line.split("\t") for line in listing.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(len(line) < 2 for line in lines):
        raise ValueError(f"{listing} must have a file name, a tab and a class on every line")
    listed = set(names.read_text(encoding="utf-8").split()) if names.is_file() else set()
    class_names = sorted(listed or {line[1] for line in lines})
    unknown = [line for line in lines if line[1] not in class_names]
    if unknown or len(class_names) != data_set.classes:
        example = f"{unknown[0][1]} is not among them" if unknown else f"{data_set.title} has {data_set.classes}"
        raise ValueError(f"{listing} and wnids.txt give {len(class_names)} classes; {example}")
    labels = np.searchsorted(class_names, [line[1] for line in lines])
    return _open_files(data_set, [images / line[0] for line in lines], labels, tuple(class_names))


def _open_files(
    data_set: DataSet, paths: list[Path], labels: NDArray[np.intp], class_names: tuple[str, ...]
) -> ImageSource:
    def fetch(indices: NDArray[np.intp]) -> list[Path]:
        return [paths[index] for index in indices]

    return ImageSource(data_set.name, fetch, labels.astype(np.int64), class_names)


def open_parquet(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`test-00000-of-00001.parquet` and its like, directly in the folder or in the usual folders below."""
    places = ((root / folder, name) for folder in _FOLDERS for name in split_names(split))
    found = (sorted([*folder.glob(f"{name}-*.parquet"), *folder.glob(f"{name}.parquet")]) for folder, name in places)
    paths = next((paths for paths in found if paths), None)
    if paths is None:
        return None
    from pyarrow.parquet import ParquetFile, read_schema

    schema = read_schema(paths[0])
    image, label = (next((name for name in names if name in schema.names), None) for names in (_IMAGES, _LABELS))
    if image is None or label is None:
        raise ValueError(f"{paths[0]} needs a column of {_IMAGES} and one of {_LABELS}; it has {schema.names}")
    labels = np.concatenate([ParquetFile(path).read([label])[label].to_numpy() for path in paths]).astype(np.int64)
    features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
    class_names = tuple(features.get(label, {}).get("names", ())) or data_set.class_numbers
    if len(class_names) != data_set.classes:
        raise ValueError(f"{paths[0]} has {len(class_names)} classes, but {data_set.title} has {data_set.classes}")
    return ImageSource(data_set.name, _ImageColumn(paths, image), labels, class_names)


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
        for number in np.unique(groups):
            positions, group = np.flatnonzero(groups == number), self.groups[number]
            column = group.to_table(columns=[self.column])[self.column]
            rows = column.take(indices[positions] - self.starts[number]).to_pylist()
            for position, row in zip(positions, rows, strict=True):
                encoded[position] = self._bytes(row, group.path)
        return encoded

    def _bytes(self, value: Any, path: str) -> bytes:
        encoded = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(encoded, bytes):
            raise ValueError(f"column {self.column!r} of {path} holds no encoded images but {type(encoded).__name__}")
        return encoded


def open_packed(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`tinyimagenet_val32.npz`: the name without dashes, a split and perhaps the size in pixels, of which the largest."""
    stem = rf"{data_set.name.replace('-', '')}_(?:{'|'.join(split_names(split))})"
    pattern = re.compile(rf"{stem}(?P<size>\d*)(?:\.(?P<shard>\d+))?\.npz")
    matches = [(match, path) for path in root.glob("*.npz") if (match := pattern.fullmatch(path.name))]
    largest = max((int(match["size"] or 0) for match, _ in matches), default=0)
    numbered = sorted((int(m["shard"] or 0), path) for m, path in matches if int(m["size"] or 0) == largest)
    if [number for number, _ in numbered] != list(range(len(numbered))):
        raise ValueError(f"{root} has {', '.join(path.name for _, path in numbered)}: a shard is missing or double")
    if not numbered:
        return None
    shards = [_read_packed(path) for _, path in numbered]
    images, labels = (np.concatenate(part) for part in zip(*(shard[:2] for shard in shards), strict=True))
    return ImageSource(data_set.name, images, labels, shards[0][2] or data_set.class_numbers)


def _read_packed(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], tuple[str, ...]]:
    with np.load(path, allow_pickle=False) as file:
        absent = {"blob", "offsets", "labels", "tile"} - set(file.files)
        if absent:
            raise ValueError(f"{path} is not a packed image set: it has no {', '.join(sorted(absent))}")
        blob, offsets, labels = file["blob"], file["offsets"], file["labels"].astype(np.int64)
        rows, columns, height, width, channels = map(int, file["tile"])
        names = tuple(map(str, file["names"])) if "names" in file.files else ()
    mosaics = decode_images([blob[start:stop].tobytes() for start, stop in pairwise(offsets)])
    if mosaics.shape[1:] != (rows * height, columns * width, channels):
        raise ValueError(f"{path} has mosaics of shape {mosaics.shape[1:]}, which its tile numbers do not explain")
    tiles = mosaics.reshape(-1, rows, height, columns, width, channels).swapaxes(2, 3)
    images = tiles.reshape(-1, height, width, channels)
    if len(images) < len(labels):
        raise ValueError(f"{path} has {len(labels)} labels for {len(images)} tiles")
    return images[: len(labels)], labels, names
