"""Small sets made here, without a download: coloured digits to learn, textures and photographs to detect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.image_set import ImageSet
from credalens_paper.data.pixels import resize_images

_TRAINING: Final = 1297  # of 1797 digits; 500 are left for the test
_COUNT: Final = {"train": 1000, "test": 500}
_TEXTURES: Final = ("stripes", "checks", "rings", "clouds")
_PHOTOS: Final = ("china", "flower")


def digits_images(*, split: str = "test", size: int = 8) -> ImageSet:
    """The handwritten digits of scikit-learn in bright ink on dark paper: 1297 to train, 500 to test.

    >>> digits_images(split="train", size=16).images.shape
    (1297, 16, 16, 3)
    """
    from sklearn.datasets import load_digits

    check_generated(split, size)
    rng = np.random.default_rng(0)
    ink, labels = load_digits(return_X_y=True)
    ink = ink.reshape(-1, 8, 8, 1) / 16
    bright, dark = rng.uniform(160, 255, (len(ink), 1, 1, 3)), rng.uniform(0, 80, (len(ink), 1, 1, 3))
    images = (dark + ink * (bright - dark)).astype(np.uint8)
    order = rng.permutation(len(ink))
    chosen = order[:_TRAINING] if split == "train" else order[_TRAINING:]
    names = tuple(map(str, range(10)))
    return ImageSet("digits", resize_images(images[chosen], size), labels[chosen].astype(np.int64), names)


def texture_images(*, split: str = "test", size: int = 8) -> ImageSet:
    """Stripes, checks, rings and clouds in two random colours.

    >>> texture_images().class_names
    ('stripes', 'checks', 'rings', 'clouds')
    """
    count, rng = check_generated(split, size), np.random.default_rng([1, split == "train"])
    labels = rng.integers(0, len(_TEXTURES), count)
    patterns = _patterns(count, size, rng)[labels, np.arange(count)]
    first, second = rng.uniform(0, 255, (2, count, 1, 1, 3))
    images = (first + patterns[..., None] * (second - first)).astype(np.uint8)
    return ImageSet("textures", images, labels, _TEXTURES)


def _patterns(count: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """All four kinds, (kinds, count, size, size) in [0, 1], with random direction, scale and phase."""
    rows, columns = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size), indexing="ij")
    angle, scale, phase = rng.uniform((0, 4, 0), (np.pi, 12, 2 * np.pi), (count, 3)).T[:, :, None, None]
    along, across = (
        scale * (np.cos(angle) * rows + np.sin(angle) * columns) + phase,
        scale * (np.cos(angle) * columns - np.sin(angle) * rows) + phase,
    )
    rings = scale * np.hypot(rows - np.cos(phase), columns - np.sin(phase))
    clouds = np.sin(along) * np.sin(0.7 * across + phase) + np.sin(1.3 * across * np.sin(along / 3))
    waves = [np.sin(along), np.sign(np.sin(along) * np.sin(across)), np.sin(2 * rings), clouds / 2]
    return (np.stack(waves) + 1) / 2


def photo_images(*, split: str = "test", size: int = 8) -> ImageSet:
    """Patches of the two photographs of scikit-learn, of 32 to 128 pixels before they are resized.

    >>> photo_images(size=16).images.shape
    (500, 16, 16, 3)
    """
    from sklearn.datasets import load_sample_images

    count, rng = check_generated(split, size), np.random.default_rng([2, split == "train"])
    photos = load_sample_images().images
    labels = rng.integers(0, len(_PHOTOS), count)
    patches = [_patch(photos[label], rng) for label in labels]
    images = np.concatenate([resize_images(patch[None], size) for patch in patches])
    return ImageSet("photos", images, labels, _PHOTOS)


def _patch(photo: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    side = rng.integers(32, 129)
    top, left = rng.integers(0, np.array(photo.shape[:2]) - side)
    return photo[top : top + side, left : left + side]


def check_generated(split: str, size: int, /) -> int:
    """How many inputs a split of a set made here has."""
    if split not in _COUNT:
        raise ValueError(f"the sets made here have the splits train and test, got {split!r}")
    if size < 8:
        raise ValueError(f"the sets made here have at least 8 pixels or features, got size={size}")
    return _COUNT[split]


SMALL_SETS: Final[dict[str, Callable[..., ImageSet]]] = {
    "digits": digits_images,
    "textures": texture_images,
    "photos": photo_images,
}
