"""Real predictions to try things on: what five trained networks say of images they know and of images they do not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

__all__ = ["EnsemblePredictions", "cifar10_ensemble"]


@dataclass(frozen=True, eq=False)
class EnsemblePredictions:
    """Probabilities (members, images, classes) in float16 on three test sets."""

    cifar10: NDArray[np.float16]
    svhn: NDArray[np.float16]
    tiny_imagenet: NDArray[np.float16]


@cache
def cifar10_ensemble() -> EnsemblePredictions:
    """Five ResNet-18 trained on CIFAR-10, on its test set (10,000), SVHN's (26,032) and Tiny-ImageNet's (10,000).

    The first five members of the ensembles behind ``results/``; no images and no labels.

    >>> from credalens import wrap
    >>> ensemble = cifar10_ensemble()
    >>> known, unknown = wrap(ensemble.cifar10[:, :1000]), wrap(ensemble.svhn[:, :1000])
    >>> bool(unknown.epistemic.mean() > 3 * known.epistemic.mean())
    True
    """
    with files("credalens").joinpath("data/cifar10_ensemble.npz").open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        loaded = EnsemblePredictions(*(arrays[name] for name in ("cifar10", "svhn", "tiny_imagenet")))
    for array in (loaded.cifar10, loaded.svhn, loaded.tiny_imagenet):
        array.flags.writeable = False
    return loaded
