"""Packed sets: `.npz` files whose images are tiles of lossless WebP mosaics.

A file holds `blob` (the mosaics' bytes one after another), `offsets` (where each begins, and the end), `labels`,
`tile` = (rows, columns, height, width, channels) and, if known, `names` of the classes. A set may be split into
numbered shards: `cifar10_train.0.npz`, `cifar10_train.1.npz`, ...
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import DataSet, split_names
from credalens_paper.data.image_set import ImageSource
from credalens_paper.data.pixels import decode_images


def open_packed(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`tinyimagenet_val32.npz`: the name without dashes, a split and perhaps the size in pixels."""
    paths = _shards(root, rf"{data_set.name.replace('-', '')}_(?:{'|'.join(split_names(split))})")
    if not paths:
        return None
    shards = [_read(path) for path in paths]
    images, labels = (np.concatenate(part) for part in zip(*(shard[:2] for shard in shards), strict=True))
    return ImageSource(data_set.name, images, labels, shards[0][2] or data_set.class_numbers)


def _shards(root: Path, stem: str) -> list[Path]:
    """The files of the largest size, in the order of their numbers."""
    pattern = re.compile(rf"{stem}(?P<size>\d*)(?:\.(?P<shard>\d+))?\.npz")
    matches = [(match, path) for path in root.glob("*.npz") if (match := pattern.fullmatch(path.name))]
    largest = max((int(match["size"] or 0) for match, _ in matches), default=0)
    numbered = sorted((int(m["shard"] or 0), path) for m, path in matches if int(m["size"] or 0) == largest)
    if [number for number, _ in numbered] != list(range(len(numbered))):
        raise ValueError(f"{root} has {', '.join(path.name for _, path in numbered)}: a shard is missing or double")
    return [path for _, path in numbered]


def _read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], tuple[str, ...]]:
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
