"""Small sets made here, without a download, to learn and to detect.

Images: coloured digits, and textures and photographs; texts: requests to an assistant, and babble.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.image_set import ImageSet, resize_images
from credalens_paper.data.texts import text_features

_TRAINING: Final = 1297  # of 1797 digits; 500 are left for the test
_COUNT: Final = {"train": 1000, "test": 500}
_TEXTURES: Final = ("stripes", "checks", "rings", "clouds")
_PHOTOS: Final = ("china", "flower")
_FILLERS: Final = ("please", "can", "you", "the", "my", "need", "to", "a", "for", "now")
_INTENTS: Final = {
    "alarm": ("alarm", "wake", "morning", "clock"),
    "balance": ("balance", "account", "savings", "money"),
    "calendar": ("calendar", "meeting", "appointment", "schedule"),
    "flight": ("flight", "plane", "airport", "ticket"),
    "joke": ("joke", "laugh", "funny", "humour"),
    "music": ("music", "song", "play", "album"),
    "recipe": ("recipe", "cook", "dinner", "ingredients"),
    "traffic": ("traffic", "route", "drive", "road"),
    "translate": ("translate", "french", "word", "language"),
    "weather": ("weather", "rain", "forecast", "sunny"),
}
_LETTERS: Final = tuple("abcdefghijklmnopqrstuvwxyz")


def _count(split: str, size: int, /) -> int:
    """How many inputs a split of a set made here has."""
    if split not in _COUNT:
        raise ValueError(f"the sets made here have the splits train and test, got {split!r}")
    if size < 8:
        raise ValueError(f"the sets made here have at least 8 pixels or features, got size={size}")
    return _COUNT[split]


def digits_images(*, split: str = "test", size: int = 8) -> ImageSet:
    """The handwritten digits of scikit-learn in bright ink on dark paper: 1297 to train, 500 to test."""
    from sklearn.datasets import load_digits

    _count(split, size)
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
    """Stripes, checks, rings and clouds in two random colours."""
    count, rng = _count(split, size), np.random.default_rng([1, split == "train"])
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
    """Patches of the two photographs of scikit-learn, of 32 to 128 pixels before they are resized."""
    from sklearn.datasets import load_sample_images

    count, rng = _count(split, size), np.random.default_rng([2, split == "train"])
    photos = load_sample_images().images
    labels = rng.integers(0, len(_PHOTOS), count)
    images = np.empty((count, size, size, 3), np.uint8)
    for place, label in enumerate(labels):
        side = rng.integers(32, 129)
        top, left = rng.integers(0, np.array(photos[label].shape[:2]) - side)
        images[place] = resize_images(photos[label][None, top : top + side, left : left + side], size)[0]
    return ImageSet("photos", images, labels, _PHOTOS)


def request_features(*, split: str = "test", size: int = 64) -> ImageSet:
    """Requests with one of ten intents: three words that everybody says and two of the intent's.

    >>> request_features(split="train").images.shape
    (1000, 64)
    """
    texts, labels = _requests(split, _count(split, size))
    return ImageSet("requests", _features(texts, size), labels, tuple(_INTENTS))


def babble_features(*, split: str = "test", size: int = 64) -> ImageSet:
    """Three words that everybody says and two of random letters.

    >>> babble_features().class_names
    ('babble',)
    """
    count, rng = _count(split, size), np.random.default_rng([4, split == "train"])
    texts = [" ".join((*rng.choice(_FILLERS, 3), *map("".join, rng.choice(_LETTERS, (2, 6))))) for _ in range(count)]
    return ImageSet("babble", _features(texts, size), np.zeros(count, np.int64), ("babble",))


@cache
def _requests(split: str, count: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng([3, split == "train"])
    words, labels = list(_INTENTS.values()), rng.integers(0, len(_INTENTS), count)
    return [" ".join((*rng.choice(_FILLERS, 3), *rng.choice(words[label], 2))) for label in labels], labels


def _features(texts: list[str], size: int) -> np.ndarray:
    return text_features(texts, _requests("train", _count("train", size))[0], size)


SMALL_SETS: Final[dict[str, Callable[..., ImageSet]]] = {
    "digits": digits_images,
    "textures": texture_images,
    "photos": photo_images,
}
TEXT_SETS: Final[dict[str, Callable[..., ImageSet]]] = {"requests": request_features, "babble": babble_features}
