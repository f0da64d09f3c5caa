"""Real predictions to try things on: those of five trained networks, on test images of their own data set and on others."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import short_repr

__all__ = ["Cifar100Predictions", "EnsemblePredictions", "cifar10_ensemble", "cifar100_ensemble"]

Predictions = TypeVar("Predictions", "EnsemblePredictions", "Cifar100Predictions")


@dataclass(frozen=True, eq=False)
class EnsemblePredictions:
    """Result of ``cifar10_ensemble``: probabilities (members, images, 10 classes) in float16 on three test sets."""

    cifar10: NDArray[np.float16]
    svhn: NDArray[np.float16]
    tiny_imagenet: NDArray[np.float16]
    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Cifar100Predictions:
    """Result of ``cifar100_ensemble``: probabilities (members, images, 100 classes) in float16 on three test sets."""

    cifar100: NDArray[np.float16]
    svhn: NDArray[np.float16]
    tiny_imagenet: NDArray[np.float16]
    __repr__ = short_repr


@cache
def cifar10_ensemble() -> EnsemblePredictions:
    """Five ResNet-18 trained on CIFAR-10, on its test set (10,000), SVHN's (26,032) and Tiny-ImageNet's (10,000).

    The first five members of the ensembles behind ``results/``; no images and no labels.

    >>> from credalens import wrap
    >>> ensemble = cifar10_ensemble()
    >>> cifar10, svhn = wrap(ensemble.cifar10[:, :1000]), wrap(ensemble.svhn[:, :1000])
    >>> bool(svhn.epistemic.mean() > 3 * cifar10.epistemic.mean())
    True
    """
    return _load(EnsemblePredictions, "cifar10_ensemble.npz")


@cache
def cifar100_ensemble() -> Cifar100Predictions:
    """Five ResNet-18 trained on CIFAR-100, on the first 2,000 images of its test set, 1,000 of SVHN's and of Tiny-ImageNet's.

    One ensemble of those behind ``results/cifar100``; no images and no labels.

    >>> from credalens import wrap
    >>> ensemble = cifar100_ensemble()
    >>> cifar100, svhn = wrap(ensemble.cifar100), wrap(ensemble.svhn)
    >>> bool(svhn.total.mean() > cifar100.total.mean() + 1)
    True
    """
    return _load(Cifar100Predictions, "cifar100_ensemble.npz")


def _load(kind: type[Predictions], name: str) -> Predictions:
    """The arrays of a shipped file, read-only."""
    with files("credalens").joinpath("data", name).open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        predictions = kind(*(arrays[field.name] for field in fields(kind)))
    for array in vars(predictions).values():
        array.flags.writeable = False
    return predictions
