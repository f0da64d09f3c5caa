"""Corrupted sets: the official CIFAR-10-C and CIFAR-100-C files where they are, and generated ones where not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from credalens_paper.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from credalens_paper.data.catalog import CORRUPTED
from credalens_paper.data.image_set import ImageSet
from credalens_paper.data.load import load_images


def load_corrupted(name: str, folder: str | Path, corruption: str, severity: int, /) -> ImageSet:
    """One corruption at one severity from the official `.npy` files, mapped into memory rather than read.

    The folder, or CIFAR-10-C in it, holds `labels.npy` and a file for each corruption: five severities of all
    test images, one after another.
    """
    _check(corruption, severity)
    root = _official(name, Path(folder))
    if root is None or not (root / f"{corruption}.npy").is_file():
        title, download = _entry(name)
        raise FileNotFoundError(
            f"no {title} with {corruption}.npy under {folder}. Download {download} and unpack it there, as {title}/"
            f"labels.npy and {title}/{corruption}.npy; or use corrupted_images, which generates what is missing"
        )
    images = np.load(root / f"{corruption}.npy", mmap_mode="r", allow_pickle=False)
    labels = np.load(root / "labels.npy", mmap_mode="r", allow_pickle=False)
    if len(images) % len(SEVERITIES) or labels.shape != (len(images),):
        raise ValueError(
            f"{root / corruption}.npy must hold five times the test images, and labels.npy as many labels; "
            f"got {len(images)} and {labels.shape}"
        )
    count = len(images) // len(SEVERITIES)
    part = slice((severity - 1) * count, severity * count)
    classes = 100 if name == "cifar100-c" else 10
    return ImageSet(name, images[part], labels[part].astype(np.int64), tuple(map(str, range(classes))))


def corrupted_images(
    name: str,
    folder: str | Path | None,
    corruption: str,
    severity: int,
    /,
    *,
    seed: int = 0,
    size: int | None = None,
    clean: ImageSet | None = None,
) -> ImageSet:
    """The official corrupted images where they are, else the test images of the set corrupted here.

    Images are corrupted at the size they have on disk, for which the parameters are meant, and resized to `size`
    afterwards. `clean` spares reading the test images again when many corruptions are asked for.

    >>> corrupted_images("digits-c", None, "fog", 3).name
    'digits-c'
    """
    _check(corruption, severity)
    if folder is not None and name in CORRUPTED:
        root = _official(name, Path(folder))
        if root is not None and (root / f"{corruption}.npy").is_file():
            official = load_corrupted(name, folder, corruption, severity)
            return official if size is None else official.resize(size)
    if clean is None:
        clean = load_images(name.removesuffix("-c"), folder)
    images = corrupt(clean.images, corruption, severity, seed=seed)
    corrupted = ImageSet(name, images, clean.labels, clean.class_names)
    return corrupted if size is None else corrupted.resize(size)


def _official(name: str, folder: Path) -> Path | None:
    title, _ = _entry(name)
    roots = (folder / title, folder / name, folder)
    return next((root for root in roots if (root / "labels.npy").is_file()), None)


def _entry(name: str) -> tuple[str, str]:
    if name not in CORRUPTED:
        raise ValueError(f"no official corrupted set {name!r}; there are {', '.join(CORRUPTED)}")
    return CORRUPTED[name]


def _check(corruption: str, severity: int) -> None:
    if corruption not in CORRUPTIONS:
        raise ValueError(f"unknown corruption {corruption!r}; there are {', '.join(CORRUPTIONS)}")
    if severity not in SEVERITIES:
        raise ValueError(f"severity is one of {SEVERITIES}, got {severity!r}")
