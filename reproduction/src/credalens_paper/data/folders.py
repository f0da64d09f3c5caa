"""Folders of image files: one folder a class, and Tiny ImageNet with its list of validation labels."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import DataSet, split_names
from credalens_paper.data.image_set import ImageSource

_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp"})


def open_class_folders(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`<split>/<class>/*.png`, also with `images/` below the class; a set with one split may leave its name out."""
    parents = [root / name for name in split_names(split)]
    if data_set.splits == (split,):
        parents.append(root)
    for parent in parents:
        files = _files_by_class(parent)
        if files:
            return _open_classes(parent, files, data_set)
    return None


def _files_by_class(parent: Path) -> dict[str, list[Path]]:
    if not parent.is_dir():
        return {}
    folders = sorted(folder for folder in parent.iterdir() if folder.is_dir())
    return {folder.name: files for folder in folders if (files := _image_files(folder))}


def _image_files(folder: Path) -> list[Path]:
    inside = folder / "images" if (folder / "images").is_dir() else folder
    return sorted(path for path in inside.iterdir() if path.suffix.lower() in _SUFFIXES)


def _open_classes(parent: Path, files: dict[str, list[Path]], data_set: DataSet) -> ImageSource:
    if len(files) != data_set.classes:
        raise ValueError(
            f"{parent} has {len(files)} folders with images, but {data_set.title} has {data_set.classes} classes; "
            f"is the copy complete, and is it this data set?"
        )
    paths = [path for paths in files.values() for path in paths]
    labels = np.repeat(np.arange(len(files)), [len(paths) for paths in files.values()])
    return _open_files(data_set, paths, labels, tuple(files))


def open_tiny_imagenet(root: Path, split: str, data_set: DataSet, /) -> ImageSource | None:
    """`val/images/*.JPEG` with `val/val_annotations.txt`: file, class, box; classes in the order of their names."""
    listing = root / "val" / "val_annotations.txt"
    images = root / "val" / "images"
    if split != "test" or not listing.is_file() or not images.is_dir():
        return None
    lines = [line.split("\t") for line in listing.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(len(line) < 2 for line in lines):
        raise ValueError(f"{listing} must have a file name, a tab and a class on every line")
    class_names = sorted(_listed_classes(root) or {line[1] for line in lines})
    unknown = [line for line in lines if line[1] not in class_names]
    if unknown or len(class_names) != data_set.classes:
        example = f"{unknown[0][1]} is not among them" if unknown else f"{data_set.title} has {data_set.classes}"
        raise ValueError(f"{listing} and wnids.txt give {len(class_names)} classes; {example}")
    labels = np.searchsorted(class_names, [line[1] for line in lines])
    return _open_files(data_set, [images / line[0] for line in lines], labels, tuple(class_names))


def _listed_classes(root: Path) -> set[str]:
    path = root / "wnids.txt"
    return set(path.read_text(encoding="utf-8").split()) if path.is_file() else set()


def _open_files(
    data_set: DataSet, paths: list[Path], labels: NDArray[np.intp], class_names: tuple[str, ...]
) -> ImageSource:
    def fetch(indices: NDArray[np.intp]) -> list[Path]:
        return [paths[index] for index in indices]

    return ImageSource(data_set.name, fetch, labels.astype(np.int64), class_names)
