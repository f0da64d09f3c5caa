"""One way to every data set: `load_images` into memory, `open_images` for parts of a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from credalens_paper.data import small
from credalens_paper.data.catalog import DataSet, checked_split, known, missing
from credalens_paper.data.folders import find_class_folders, find_tiny_imagenet
from credalens_paper.data.found import Found
from credalens_paper.data.image_set import ImageSet, ImageSource
from credalens_paper.data.originals import find_cifar10, find_cifar100, find_svhn
from credalens_paper.data.packed import find_packed
from credalens_paper.data.parquet import find_parquet

Finder = Callable[[Path, str, DataSet], Found | None]

_ORIGINAL: Final[dict[str, tuple[Finder, ...]]] = {
    "cifar10": (find_cifar10,),
    "cifar100": (find_cifar100,),
    "svhn": (find_svhn,),
    "tiny-imagenet": (find_tiny_imagenet,),
}


def load_images(
    name: str, folder: str | Path | None = None, /, *, split: str = "test", size: int | None = None
) -> ImageSet:
    """A data set in memory, from whichever layout lies in the folder, at `size` pixels if told.

    `folder` is the data set's own or the one above it. 'test' is the labelled evaluation split, whatever the set
    calls it. The sets digits, textures and photos are made here and need no folder.

    >>> load_images("digits", split="test").images.shape
    (500, 8, 8, 3)
    """
    if name in small.MAKERS:
        return small.MAKERS[name](split=split, size=size or 8)
    return open_images(name, folder, split=split, size=size).load()


def open_images(
    name: str, folder: str | Path | None = None, /, *, split: str = "test", size: int | None = None
) -> ImageSource:
    """The same set without reading its images yet, for sets that do not fit into memory."""
    if size is not None and size < 1:
        raise ValueError(f"size is a number of pixels, got {size}")
    entry, asked = known(name), checked_split(name, split)
    if folder is None:
        raise missing(name, None, asked)
    found = next(_found(Path(folder), asked, entry), None)
    if found is None:
        raise missing(name, Path(folder), asked)
    read = partial(found.read, size=size, crop=entry.crop)
    return ImageSource(name, found.labels, found.class_names, read)


def _found(folder: Path, split: str, entry: DataSet) -> Iterator[Found]:
    """What lies there: the set's own folders before the given one, the original layout before the others."""
    for root in [folder / own for own in entry.folders] + [folder]:
        if root.is_dir():
            results = (find(root, split, entry) for find in _finders(entry.name))
            yield from (found for found in results if found is not None)


def _finders(name: str) -> tuple[Finder, ...]:
    return (*_ORIGINAL.get(name, ()), find_class_folders, find_parquet, find_packed)
