"""Human labels with mistakes for the training images of another set: CIFAR-N."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from credalens_paper.data.catalog import DataSet
from credalens_paper.data.image_set import ImageSource

LABELS = "worse_label"
"""Of three people's labels for each image a wrong one, where there is one: 40.2 % of CIFAR-10N are wrong."""


def relabelled(clean: ImageSource, folder: Path, split: str, data_set: DataSet, /) -> ImageSource:
    """The clean set with the labels of `cifar10n_labels.npz` in its training split; the test split keeps its own."""
    if split == "test":
        return replace(clean, name=data_set.name)
    path = folder / f"{data_set.name}_labels.npz"
    if not path.is_file():
        raise FileNotFoundError(f"no {path.name} in {folder}. Download {data_set.download}.")
    with np.load(path, allow_pickle=False) as file:
        if LABELS not in file.files:
            raise ValueError(f"{path} has no array {LABELS!r}, but {', '.join(file.files) or 'none'}")
        labels = file[LABELS].astype(np.int64)
    if labels.shape != clean.labels.shape:
        raise ValueError(f"{path} has labels of shape {labels.shape} for {len(clean)} images of {clean.name}")
    return replace(clean, name=data_set.name, labels=labels)
