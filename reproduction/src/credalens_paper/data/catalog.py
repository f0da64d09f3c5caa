"""What is known about each data set: its classes, its statistics, where people get it and where they put it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Statistics = tuple[tuple[float, float, float], tuple[float, float, float]]

_IMAGENET: Final[Statistics] = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_UNCHANGED: Final[Statistics] = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_CLINC: Final = (
    "data_full.json from the repository of 'An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction' "
    "(Larson et al., EMNLP 2019)"
)
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
    folders: tuple[str, ...]  # names its folder may have
    splits: tuple[str, ...] = ("train", "test")
    relabels: str | None = None  # the set whose training images it gives other labels
    crop: bool = False  # resize the shorter side and cut the centre, as usual for photographs of any shape
    texts: bool = False  # features of texts in place of images

    @property
    def class_numbers(self) -> tuple[str, ...]:
        """The classes as numbers, for files that do not name them."""
        return tuple(map(str, range(self.classes)))


_CIFAR10_STATISTICS: Final[Statistics] = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
DATA_SETS: Final = {data_set.name: data_set for data_set in (
    DataSet("cifar10", "CIFAR-10", 10, _CIFAR10_STATISTICS,
            f"'CIFAR-10 python version' (cifar-10-python.tar.gz) from the page {_CIFAR}",
            ("cifar10", "cifar-10", "CIFAR10", "CIFAR-10")),
    DataSet("cifar100", "CIFAR-100", 100, ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
            f"'CIFAR-100 python version' (cifar-100-python.tar.gz) from the page {_CIFAR}",
            ("cifar100", "cifar-100", "CIFAR100", "CIFAR-100")),
    DataSet("cifar10n", "CIFAR-10N", 10, _CIFAR10_STATISTICS,
            "CIFAR-10_human.pt from the page 'CIFAR-N' (Wei et al., ICLR 2022), write its array worse_label with np.savez to "
            "cifar10n_labels.npz beside CIFAR-10",
            ("cifar10n", "cifar-10n"), relabels="cifar10"),
    DataSet("svhn", "SVHN", 10, ((0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
            "'Format 2: Cropped Digits' (train_32x32.mat, test_32x32.mat) from the page 'The Street View House Numbers "
            "(SVHN) Dataset' (Stanford University)",
            ("svhn", "SVHN")),
    DataSet("tiny-imagenet", "Tiny ImageNet", 200, ((0.4802, 0.4481, 0.3975), (0.2770, 0.2691, 0.2821)),
            "tiny-imagenet-200.zip from the page 'Tiny ImageNet' (Stanford University, CS231n)",
            ("tiny-imagenet-200", "tiny-imagenet", "tinyimagenet")),
    DataSet("imagenet", "ImageNet", 1000, _IMAGENET,
            "the training and validation images of ILSVRC2012 from the page 'Download ImageNet Data' (image-net.org)",
            ("imagenet", "ImageNet", "ILSVRC2012", "imagenet-1k"), crop=True),
    DataSet("imagenet-o", "ImageNet-O", 200, _IMAGENET,
            "imagenet-o.tar from the page of 'Natural Adversarial Examples' (Hendrycks et al.)",
            ("imagenet-o", "imageneto"), splits=("test",), crop=True),
    DataSet("clinc150", "CLINC150", 150, _UNCHANGED, _CLINC, ("clinc150", "clinc"), texts=True),
    DataSet("clinc150-oos", "CLINC150 OOS", 1, _UNCHANGED, _CLINC, ("clinc150", "clinc"), splits=("test",), texts=True),
)}  # fmt: skip
MADE_TEXTS: Final = ("requests", "babble")  # sets of texts that are made here

CORRUPTED: Final = {
    "cifar10-c": ("CIFAR-10-C", "CIFAR-10-C.tar from the Zenodo record 'CIFAR-10-C and CIFAR-10-P' (Hendrycks et al.)"),
    "cifar100-c": ("CIFAR-100-C", "CIFAR-100-C.tar from the Zenodo record 'CIFAR-100-C' (Hendrycks et al.)"),
}


def normalization(name: str, /) -> Statistics:
    """Mean and standard deviation of the channels, in [0, 1]; data sets made here have round ones.

    Evaluation sets are normalised with the statistics of the set that the network was trained on.
    """
    name = name.removesuffix("-c")
    if name in ("digits", "textures", "photos"):
        return (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
    if name in MADE_TEXTS:
        return _UNCHANGED
    return find_data_set(name).statistics


def has_texts(name: str, /) -> bool:
    """Whether a set is of texts, not of images."""
    return name in MADE_TEXTS or (name in DATA_SETS and DATA_SETS[name].texts)


def find_data_set(name: str, /) -> DataSet:
    """The data set of that name, or an error that lists the names."""
    if name not in DATA_SETS:
        made = ("digits", "textures", "photos", *MADE_TEXTS)
        raise ValueError(f"unknown data set {name!r}; there are {', '.join((*DATA_SETS, *made))}")
    return DATA_SETS[name]


def check_split(data_set: DataSet, split: str, /) -> str:
    """'train' or 'test'; 'val' and its spellings are the labelled evaluation split, which is called test here."""
    name = "test" if split in _EVALUATION else split
    if name not in data_set.splits:
        raise ValueError(f"{data_set.title} has the splits {', '.join(data_set.splits)}, got {split!r}")
    return name


def split_names(split: str, /) -> tuple[str, ...]:
    """The names that a split may have on disk."""
    return _EVALUATION if split == "test" else ("train",)
