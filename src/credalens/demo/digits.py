"""The ID data: scikit-learn's 8 x 8 digits, split once, and five small networks trained on one half."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier

Images = NDArray[np.float64]
MEMBERS = 5
SHIFTS = ((0.0, 0.0), (0.0, 0.7), (0.0, -0.7), (0.7, 0.0), (-0.7, 0.0))


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (rows, 8, 8) from 0 to 1 with their labels, for training and for testing."""

    train_images: Images
    train_labels: NDArray[np.int64]
    test_images: Images
    test_labels: NDArray[np.int64]


def load(seed: int = 0, /) -> Digits:
    """Half of the digits for training, half for testing, with every digit in the same proportion."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    halves = train_test_split(data.images / 16, data.target, test_size=0.5, stratify=data.target, random_state=seed)
    return Digits(halves[0], halves[2], halves[1], halves[3])


def train(digits: Digits, /, *, epochs: int = 20, report: Callable[[int, int], None]) -> list[MLPClassifier]:
    """Networks that differ only in their seed, trained on the digits and on the same digits moved by a fraction of a pixel.

    ``report`` is called with how many are done and how many there are.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    images, labels = _moved(digits)
    networks: list[MLPClassifier] = []
    report(0, MEMBERS)
    for seed in range(MEMBERS):
        network = MLPClassifier((64, 64), max_iter=epochs, learning_rate_init=2e-3, batch_size=64, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the stopping rule
            networks.append(network.fit(images.reshape(len(images), -1), labels))
        report(seed + 1, MEMBERS)
    return networks


def _moved(digits: Digits) -> tuple[Images, NDArray[np.int64]]:
    from scipy.ndimage import shift

    images = [shift(digits.train_images, (0.0, *move), order=1) for move in SHIFTS]
    return np.concatenate(images), np.tile(digits.train_labels, len(SHIFTS))


def predict(networks: list[MLPClassifier], images: Images, /) -> NDArray[np.float64]:
    """The probabilities of every network, (members, rows, classes)."""
    flat = images.reshape(len(images), -1)
    return np.stack([network.predict_proba(flat) for network in networks])
