"""Folders of image files: one folder a class, and Tiny ImageNet with its list of validation labels."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from credalens_paper.data.catalog import DataSet, spellings
from credalens_paper.data.found import Found

_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp"})


def find_class_folders(root: Path, split: str, entry: DataSet, /) -> Found | None:
    """`<split>/<class>/*.png`, also with `images/` below the class; a set with one split may leave its name out."""
    parents = [root / name for name in spellings(split)]
    if entry.splits == (split,):
        parents.append(root)
    for parent in parents:
        classes = _classes(parent)
        if classes:
            return _found(parent, classes, entry)
    return None


def _classes(parent: Path) -> dict[str, list[Path]]:
    if not parent.is_dir():
        return {}
    folders = sorted(folder for folder in parent.iterdir() if folder.is_dir())
    return {folder.name: pictures for folder in folders if (pictures := _pictures(folder))}


def _pictures(folder: Path) -> list[Path]:
    inside = folder / "images" if (folder / "images").is_dir() else folder
    return sorted(path for path in inside.iterdir() if path.suffix.lower() in _SUFFIXES)


def _found(parent: Path, classes: dict[str, list[Path]], entry: DataSet) -> Found:
    if len(classes) != entry.classes:
        raise ValueError(
            f"{parent} has {len(classes)} folders with images, but {entry.title} has {entry.classes} classes; "
            f"is the copy complete, and is it this data set?"
        )
    paths = [path for pictures in classes.values() for path in pictures]
    labels = np.repeat(np.arange(len(classes)), [len(pictures) for pictures in classes.values()])
    return Found(parent, lambda indices: [paths[i] for i in indices], labels.astype(np.int64), tuple(classes))


def find_tiny_imagenet(root: Path, split: str, entry: DataSet, /) -> Found | None:
    """`val/images/*.JPEG` with `val/val_annotations.txt`: file, class, box; classes in the order of their names."""
    listing = root / "val" / "val_annotations.txt"
    images = root / "val" / "images"
    if split != "test" or not listing.is_file() or not images.is_dir():
        return None
    lines = [line.split("\t") for line in listing.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(len(line) < 2 for line in lines):
        raise ValueError(f"{listing} must have a file name, a tab and a class on every line")
    class_names = sorted(_tiny_classes(root) or {line[1] for line in lines})
    unknown = [line for line in lines if line[1] not in class_names]
    if unknown or len(class_names) != entry.classes:
        example = f"{unknown[0][1]} is not among them" if unknown else f"{entry.title} has {entry.classes}"
        raise ValueError(f"{listing} and wnids.txt give {len(class_names)} classes; {example}")
    paths = [images / line[0] for line in lines]
    labels = np.searchsorted(class_names, [line[1] for line in lines]).astype(np.int64)
    return Found(listing, lambda indices: [paths[i] for i in indices], labels, tuple(class_names))


def _tiny_classes(root: Path) -> set[str]:
    path = root / "wnids.txt"
    return set(path.read_text(encoding="utf-8").split()) if path.is_file() else set()
