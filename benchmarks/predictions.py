"""Predictions to time on: those of real networks for ten classes, peaked like theirs for other numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.datasets import cifar10_ensemble

__all__ = ["MEMBERS", "flat", "predictions_for", "realistic"]

MEMBERS = 5


def realistic(members: int, rows: int, classes: int, seed: int = 0) -> NDArray[np.float64]:
    """Softmax of logits that members share up to noise, with one class ahead by a varying margin."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.normal(size=(1, rows, classes)) + rng.normal(size=(members, rows, classes))
    ahead = rng.integers(0, classes, rows)
    logits[:, np.arange(rows), ahead] += 8 * rng.random(rows) + np.log(classes)
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def flat(members: int, rows: int, classes: int, seed: int = 0) -> NDArray[np.float64]:
    """Members drawn uniformly from the simplex: nothing is peaked, and the lowest entropy is hardest to find."""
    return np.random.default_rng(seed).dirichlet(np.ones(classes), (members, rows))


def predictions_for(members: int, rows: int, classes: int, /, *, seed: int = 0) -> tuple[NDArray[np.float64], str]:
    """Predictions to time on and where they come from: real ones of the shipped ensemble where they fit, else made up."""
    if (members, classes) != (MEMBERS, 10):
        return realistic(members, rows, classes, seed), "generated"
    shipped = cifar10_ensemble()
    every = np.concatenate([shipped.cifar10, shipped.svhn, shipped.tiny_imagenet], axis=1)
    chosen = np.random.default_rng(seed).choice(every.shape[1], rows, replace=False)
    p = every[:, chosen].astype(np.float64, order="C")  # picking rows leaves the members innermost: not as shipped
    return p / p.sum(axis=-1, keepdims=True), "ResNet-18 on CIFAR-10, SVHN, Tiny-ImageNet"
