"""One way to every data set: `load_images` into memory, `open_images` for parts of a set, `load_corrupted`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens_paper.corruptions import SEVERITIES, check_corruption
from credalens_paper.data.catalog import CORRUPTED, DATA_SETS, DataSet, check_split, find_data_set, split_names
from credalens_paper.data.generated import SMALL_SETS, TEXT_SETS, digits_images
from credalens_paper.data.image_set import ImageSet, ImageSource
from credalens_paper.data.layouts import (
    open_cifar10,
    open_cifar100,
    open_class_folders,
    open_packed,
    open_parquet,
    open_svhn,
    open_tiny_imagenet,
)
from credalens_paper.data.texts import load_texts


class Layout(NamedTuple):
    """A way in which a data set may lie in a folder: what its files are called, and the function that opens them."""

    files: str
    open: Callable[[Path, str, DataSet], ImageSource | None]
    data_set: str | None = None  # the one set that comes in this layout; None: any may


LAYOUTS: Final = (
    Layout("cifar-10-batches-py/data_batch_1 ... test_batch", open_cifar10, "cifar10"),
    Layout("cifar-100-python/train, test, meta", open_cifar100, "cifar100"),
    Layout("train_32x32.mat, test_32x32.mat", open_svhn, "svhn"),
    Layout("val/images/*.JPEG, val/val_annotations.txt", open_tiny_imagenet, "tiny-imagenet"),
    Layout("{split}/<class>/*.png (or jpg, jpeg, webp), also in <class>/images/", open_class_folders),
    Layout("{split}-*.parquet (Hugging Face, also in data/)", open_parquet),
    Layout("{name}_{split}.npz (packed)", open_packed),
)


def load_images(
    name: str, folder: str | Path | None = None, /, *, split: str = "test", size: int | None = None
) -> ImageSet:
    """A data set in memory, from whichever layout lies in the folder, at `size` pixels if given.

    `folder` is the data set's own or the one above it. 'test' is the labelled evaluation split, whatever the set
    calls it. The sets digits, textures, photos, requests and babble are made here and need no folder. Of texts the features
    are loaded, `size` of them.
    """
    if name in SMALL_SETS:
        return SMALL_SETS[name](split=split, size=size or 8)
    if name in TEXT_SETS:
        return TEXT_SETS[name](split=split, size=size or 64)
    if find_data_set(name).texts:
        return load_texts(name, folder, split=split, size=size)
    return open_images(name, folder, split=split, size=size).load()


def open_images(
    name: str, folder: str | Path | None = None, /, *, split: str = "test", size: int | None = None
) -> ImageSource:
    """The same set without reading its images yet, for sets that do not fit into memory."""
    if size is not None and size < 1:
        raise ValueError(f"size is a number of pixels, got {size}")
    data_set = find_data_set(name)
    if data_set.texts:
        raise ValueError(f"{data_set.title} is a set of texts and small; load it as a whole with load_images")
    split = check_split(data_set, split)
    if data_set.relabels is not None and folder is not None:
        return relabelled(open_images(data_set.relabels, folder, split=split, size=size), Path(folder), split, data_set)
    layouts = [layout for layout in LAYOUTS if layout.data_set in (None, data_set.name)]
    # The set's own folders before the given one, the original layout before the others.
    roots = () if folder is None else (*(Path(folder, name) for name in data_set.folders), Path(folder))
    sources = (layout.open(root, split, data_set) for root in roots if root.is_dir() for layout in layouts)
    source = next((source for source in sources if source is not None), None)
    if source is None:
        files = "".join(f"\n  {one.files.format(name=data_set.name.replace('-', ''), split=split)}" for one in layouts)
        raise FileNotFoundError(_how_to_get(data_set, folder, split, files))
    return replace(source, size=size, crop=data_set.crop)


def _how_to_get(data_set: DataSet, folder: str | Path | None, split: str, layouts: str) -> str:
    """What to download and where to put it."""
    if split == "test":
        layouts += f"\nThe test split may be called {', '.join(split_names(split))}."
    if folder is None:
        return (
            f"{data_set.title} is read from a folder, and none was given. Download {data_set.download}, unpack it "
            f"anywhere and give that folder. Layouts understood:{layouts}"
        )
    return (
        f"no {split} split of {data_set.title} under {folder}. Download {data_set.download} and unpack it there, or in a "
        f"folder {data_set.folders[0]} there. Layouts looked for:{layouts}"
    )


def load_corrupted(name: str, folder: str | Path, corruption: str, severity: int, /) -> ImageSet:
    """One corruption at one severity from the official `.npy` files, mapped into memory rather than read.

    The folder, or CIFAR-10-C in it, holds `labels.npy` and a file for each corruption: five severities of all test images,
    one after another. `credalens_paper.corruptions` makes such images where they are missing.
    """
    check_corruption(corruption, severity)
    if name not in CORRUPTED:
        raise ValueError(f"no official corrupted set {name!r}; there are {', '.join(CORRUPTED)}")
    title, download = CORRUPTED[name]
    roots = (Path(folder) / title, Path(folder) / name, Path(folder))
    root = next((root for root in roots if (root / "labels.npy").is_file()), None)
    if root is None or not (root / f"{corruption}.npy").is_file():
        raise FileNotFoundError(
            f"no {title} with {corruption}.npy under {folder}. Download {download} and unpack it there, as {title}/"
            f"labels.npy and {title}/{corruption}.npy; or make such images with credalens_paper.corruptions.corrupt"
        )
    files = (root / f"{corruption}.npy", root / "labels.npy")
    images, labels = (np.load(file, mmap_mode="r", allow_pickle=False) for file in files)
    if len(images) % len(SEVERITIES) or labels.shape != (len(images),):
        raise ValueError(
            f"{root / corruption}.npy must hold five times the test images, and labels.npy as many labels; "
            f"got {len(images)} and {labels.shape}"
        )
    count = len(images) // len(SEVERITIES)
    rows = slice((severity - 1) * count, severity * count)
    class_names = DATA_SETS[name.removesuffix("-c")].class_numbers
    return ImageSet(name, images[rows], labels[rows].astype(np.int64), class_names)


COUNTS: Final = "cifar10h_counts.npy"
DOWNLOAD: Final = (
    "cifar10h-counts.npy from the repository of 'Human uncertainty makes classification more robust' (Peterson et al., ICCV "
    f"2019) and save it as {COUNTS}"
)
SHAPE: Final = (10_000, 10)
ANSWERS, SHARP = 50, 0.9
WRONG: Final = "worse_label"
"""Of three people's labels for each image a wrong one, where there is one: 40.2 % of CIFAR-10N are wrong."""


def load_human_counts(name: str, folder: str | Path | None, /) -> NDArray[np.int64]:
    """Counts (images, classes) for the test images of CIFAR-10; answers to the digits are drawn here, most of them right."""
    if name == "digits":
        labels, rng = digits_images().labels, np.random.default_rng(5)
        right = SHARP + (1 - SHARP) * rng.random((len(labels), 1))
        return rng.multinomial(ANSWERS, right * np.eye(10)[labels] + (1 - right) / 10).astype(np.int64)
    path = Path(folder or ".") / COUNTS
    if name != "cifar10" or folder is None or not path.is_file():
        where = folder or "the data folder, as none was given"
        raise FileNotFoundError(f"no {COUNTS} in {where}; download {DOWNLOAD}")
    counts = np.load(path, allow_pickle=False)
    if counts.shape != SHAPE or counts.dtype.kind not in "iu" or counts.min() < 0 or not counts.sum(axis=-1).all():
        raise ValueError(
            f"{path} must hold how often each of ten classes was chosen for 10,000 images, got {counts.dtype} of shape "
            f"{counts.shape}"
        )
    return np.asarray(counts, np.int64)


def relabelled(clean: ImageSource, folder: Path, split: str, data_set: DataSet, /) -> ImageSource:
    """The clean set with the labels of `cifar10n_labels.npz` in its training split; the test split keeps its own."""
    if split == "test":
        return replace(clean, name=data_set.name)
    path = folder / f"{data_set.name}_labels.npz"
    if not path.is_file():
        raise FileNotFoundError(f"no {path.name} in {folder}. Download {data_set.download}.")
    with np.load(path, allow_pickle=False) as file:
        if WRONG not in file.files:
            raise ValueError(f"{path} has no array {WRONG!r}, but {', '.join(file.files) or 'none'}")
        labels = file[WRONG].astype(np.int64)
    if labels.shape != clean.labels.shape:
        raise ValueError(f"{path} has labels of shape {labels.shape} for {len(clean)} images of {clean.name}")
    return replace(clean, name=data_set.name, labels=labels)
