"""Ways to give test images to a network: as in training, and the mistakes that would lower its accuracy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Numbers = tuple[float, ...]
Statistics = tuple[Numbers, Numbers]
TRAINED: Final = "trained"
SEVEREST: Final = "severest"
EVERY: Final = 5
"""Of a set that is given in one of these ways, every fifth image is enough."""


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Preparation:
    """A way in plain words, by what it does to bytes (n, h, w, 3), and to the mean and deviation they are normalised by.

    Scales are statistics too: bytes that are not divided by 255 have a mean and a deviation 255 times smaller.
    """

    words: str
    statistics: Callable[[Statistics], Statistics] = _same
    arrange: Callable[[Pixels], Pixels] = _same


def _fixed(mean: float, std: float) -> Callable[[Statistics], Statistics]:
    return lambda statistics: ((mean,) * 3, (std,) * 3)


def _normalised_twice(statistics: Statistics) -> Statistics:
    """((x - m) / s - m) / s is (x - m - m s) / s^2."""
    pairs = list(zip(*statistics, strict=True))
    return tuple(m + m * s for m, s in pairs), tuple(s * s for _, s in pairs)


def _in_steps(images: Pixels) -> Pixels:
    """Every fifth image, then those behind them: their labels stay in the order of the file."""
    return images[np.argsort(np.arange(len(images)) % 5, kind="stable")]


PREPARATIONS: Final = {
    TRAINED: Preparation("as in training"),
    "unit": Preparation("0 to 1, not normalised", _fixed(0, 1)),
    "bytes": Preparation("0 to 255, not normalised", _fixed(0, 1 / 255)),
    "normalised_twice": Preparation("normalised twice", _normalised_twice),
    "signed": Preparation("-1 to 1", _fixed(0.5, 0.5)),
    "bgr": Preparation("blue for red", arrange=lambda images: images[..., ::-1]),
    "swapped": Preparation("height and width swapped", arrange=lambda images: images.swapaxes(1, 2)),
    "labels": Preparation("labels of other images", arrange=_in_steps),
    SEVEREST: Preparation("severest corruptions alone"),
}
"""By name; the severest corruptions alone are a mistake of the average, with images given as in training."""
