"""The official files of CIFAR-10-C and CIFAR-100-C; `credalens_paper.corruptions` makes such images where they are missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from credalens_paper.corruptions import SEVERITIES, check_corruption
from credalens_paper.data.catalog import CORRUPTED, DATA_SETS
from credalens_paper.data.image_set import ImageSet


def load_corrupted(name: str, folder: str | Path, corruption: str, severity: int, /) -> ImageSet:
    """One corruption at one severity from the official `.npy` files, mapped into memory rather than read.

    The folder, or CIFAR-10-C in it, holds `labels.npy` and a file for each corruption: five severities of all
    test images, one after another.
    """
    check_corruption(corruption, severity)
    if name not in CORRUPTED:
        raise ValueError(f"no official corrupted set {name!r}; there are {', '.join(CORRUPTED)}")
    title, download = CORRUPTED[name]
    root = _find_root(Path(folder), title, name)
    if root is None or not (root / f"{corruption}.npy").is_file():
        raise FileNotFoundError(
            f"no {title} with {corruption}.npy under {folder}. Download {download} and unpack it there, as {title}/"
            f"labels.npy and {title}/{corruption}.npy; or make such images with credalens_paper.corruptions.corrupt"
        )
    images = np.load(root / f"{corruption}.npy", mmap_mode="r", allow_pickle=False)
    labels = np.load(root / "labels.npy", mmap_mode="r", allow_pickle=False)
    if len(images) % len(SEVERITIES) or labels.shape != (len(images),):
        raise ValueError(
            f"{root / corruption}.npy must hold five times the test images, and labels.npy as many labels; "
            f"got {len(images)} and {labels.shape}"
        )
    count = len(images) // len(SEVERITIES)
    rows = slice((severity - 1) * count, severity * count)
    class_names = DATA_SETS[name.removesuffix("-c")].class_numbers
    return ImageSet(name, images[rows], labels[rows].astype(np.int64), class_names)


def _find_root(folder: Path, title: str, name: str) -> Path | None:
    roots = (folder / title, folder / name, folder)
    return next((root for root in roots if (root / "labels.npy").is_file()), None)
