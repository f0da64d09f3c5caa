"""One way to every data set: `load_images` into memory, `open_images` for parts of a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from credalens_paper.data.catalog import DataSet, check_split, find_data_set, split_names
from credalens_paper.data.folders import open_class_folders, open_tiny_imagenet
from credalens_paper.data.generated import SMALL_SETS
from credalens_paper.data.generated_texts import TEXT_SETS
from credalens_paper.data.image_set import ImageSet, ImageSource
from credalens_paper.data.noisy_labels import relabelled
from credalens_paper.data.originals import open_cifar10, open_cifar100, open_svhn
from credalens_paper.data.packed import open_packed
from credalens_paper.data.parquet_images import open_parquet
from credalens_paper.data.texts import load_texts


@dataclass(frozen=True)
class Layout:
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

    >>> load_images("digits", split="test").images.shape
    (500, 8, 8, 3)
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
    source = None if folder is None else next(_sources(Path(folder), split, data_set), None)
    if source is None:
        raise FileNotFoundError(_how_to_get(data_set, folder, split))
    return replace(source, size=size, crop=data_set.crop)


def _sources(folder: Path, split: str, data_set: DataSet) -> Iterator[ImageSource]:
    """What lies there: the set's own folders before the given one, the original layout before the others."""
    for root in (*(folder / name for name in data_set.folders), folder):
        for layout in _layouts(data_set) if root.is_dir() else ():
            source = layout.open(root, split, data_set)
            if source is not None:
                yield source


def _layouts(data_set: DataSet) -> list[Layout]:
    return [layout for layout in LAYOUTS if layout.data_set in (None, data_set.name)]


def _how_to_get(data_set: DataSet, folder: str | Path | None, split: str) -> str:
    """What to download and where to put it."""
    name = data_set.name.replace("-", "")
    layouts = "".join(f"\n  {layout.files.format(name=name, split=split)}" for layout in _layouts(data_set))
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
