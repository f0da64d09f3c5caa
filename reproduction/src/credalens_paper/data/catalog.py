"""What is known about each data set: its classes, its statistics, where people get it and where they put it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

Statistics = tuple[tuple[float, float, float], tuple[float, float, float]]

_IMAGENET: Final[Statistics] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CIFAR: Final = "'CIFAR-10 and CIFAR-100 datasets' (Alex Krizhevsky, University of Toronto)"

_EVALUATION: Final = ("test", "val", "valid", "validation")


@dataclass(frozen=True)
class DataSet:
    """One downloadable data set."""

    name: str
    title: str
    classes: int
    statistics: Statistics
    download: str
    folders: tuple[str, ...]  # names of its own folder
    layouts: tuple[str, ...]  # what may lie there, for the message when nothing does
    splits: tuple[str, ...] = ("train", "test")
    crop: bool = False  # resize the shorter side and cut the centre, as usual for photographs of any shape


_ENTRIES: Final = (
    DataSet(
        "cifar10",
        "CIFAR-10",
        10,
        ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
        f"'CIFAR-10 python version' (cifar-10-python.tar.gz) from the page {_CIFAR}",
        ("cifar10", "cifar-10", "CIFAR10", "CIFAR-10"),
        ("cifar-10-batches-py/data_batch_1 ... test_batch",),
    ),
    DataSet(
        "cifar100",
        "CIFAR-100",
        100,
        ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
        f"'CIFAR-100 python version' (cifar-100-python.tar.gz) from the page {_CIFAR}",
        ("cifar100", "cifar-100", "CIFAR100", "CIFAR-100"),
        ("cifar-100-python/train, test, meta",),
    ),
    DataSet(
        "svhn",
        "SVHN",
        10,
        ((0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
        "'Format 2: Cropped Digits' (train_32x32.mat, test_32x32.mat) from the page 'The Street View House Numbers "
        "(SVHN) Dataset' (Stanford University)",
        ("svhn", "SVHN"),
        ("train_32x32.mat, test_32x32.mat",),
    ),
    DataSet(
        "tiny-imagenet",
        "Tiny ImageNet",
        200,
        ((0.4802, 0.4481, 0.3975), (0.2770, 0.2691, 0.2821)),
        "tiny-imagenet-200.zip from the page 'Tiny ImageNet' (Stanford University, CS231n)",
        ("tiny-imagenet-200", "tiny-imagenet", "tinyimagenet"),
        ("tiny-imagenet-200/train/<class>/images/*.JPEG, val/images/*.JPEG, val/val_annotations.txt",),
    ),
    DataSet(
        "imagenet",
        "ImageNet",
        1000,
        _IMAGENET,
        "the training and validation images of ILSVRC2012 from the page 'Download ImageNet Data' (image-net.org)",
        ("imagenet", "ImageNet", "ILSVRC2012", "imagenet-1k"),
        ("train/<class>/*.JPEG, val/<class>/*.JPEG",),
        crop=True,
    ),
    DataSet(
        "imagenet-o",
        "ImageNet-O",
        200,
        _IMAGENET,
        "imagenet-o.tar from the page of 'Natural Adversarial Examples' (Hendrycks et al.)",
        ("imagenet-o", "imageneto"),
        ("imagenet-o/<class>/*.jpg",),
        splits=("test",),
        crop=True,
    ),
)

DATA_SETS: Final = {entry.name: entry for entry in _ENTRIES}

CORRUPTED: Final = {
    "cifar10-c": ("CIFAR-10-C", "CIFAR-10-C.tar from the Zenodo record 'CIFAR-10-C and CIFAR-10-P' (Hendrycks et al.)"),
    "cifar100-c": ("CIFAR-100-C", "CIFAR-100-C.tar from the Zenodo record 'CIFAR-100-C' (Hendrycks et al.)"),
}


def normalization(name: str, /) -> Statistics:
    """Mean and standard deviation of the channels, in [0, 1]; data sets made here have round ones.

    Evaluation sets are normalised with the statistics of the set that the network was trained on.

    >>> normalization("imagenet")[0]
    (0.485, 0.456, 0.406)
    """
    name = name.removesuffix("-c")
    if name in ("digits", "textures", "photos"):
        return (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
    return known(name).statistics


def known(name: str, /) -> DataSet:
    """The entry of a data set, or an error that lists the names."""
    if name not in DATA_SETS:
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(DATA_SETS)}, digits, textures, photos")
    return DATA_SETS[name]


def checked_split(name: str, split: str, /) -> str:
    """'train' or 'test'; 'val' and its spellings are the labelled evaluation split, which is called test here."""
    asked = "test" if split in _EVALUATION else split
    if asked not in known(name).splits:
        raise ValueError(f"{known(name).title} has the splits {', '.join(known(name).splits)}, got {split!r}")
    return asked


def spellings(split: str, /) -> tuple[str, ...]:
    """The names under which a split may be found on disk."""
    return _EVALUATION if split == "test" else ("train",)


def missing(name: str, folder: Path | None, split: str, /) -> FileNotFoundError:
    """What to download and where to put it."""
    entry = known(name)
    layouts = (
        *entry.layouts,
        f"{spellings(split)[0]}/<class>/*.png (or jpg, jpeg, webp)",
        f"{spellings(split)[-1]}-*.parquet (Hugging Face, also in data/)",
        f"{name.replace('-', '')}_{split}.npz (packed)",
    )
    tried = "".join(f"\n  {layout}" for layout in dict.fromkeys(layouts))
    if folder is None:
        return FileNotFoundError(
            f"{entry.title} is read from a folder, and none was given. Download {entry.download}, unpack it anywhere and "
            f"give that folder. Layouts understood:{tried}"
        )
    return FileNotFoundError(
        f"no {split} split of {entry.title} under {folder}. Download {entry.download} and unpack it there, or in a "
        f"folder {entry.folders[0]} there. Layouts looked for:{tried}"
    )
