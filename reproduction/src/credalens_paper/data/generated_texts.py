"""Small sets of texts made here, without a download: requests to an assistant to learn, babble to detect."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from credalens_paper.data.generated import check_generated
from credalens_paper.data.image_set import ImageSet
from credalens_paper.data.texts import text_features

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


def request_features(*, split: str = "test", size: int = 64) -> ImageSet:
    """Requests with one of ten intents: three words that everybody says and two of the intent's.

    >>> request_features(split="train").images.shape
    (1000, 64)
    """
    texts, labels = _requests(split, check_generated(split, size))
    return ImageSet("requests", _features(texts, size), labels, tuple(_INTENTS))


def babble_features(*, split: str = "test", size: int = 64) -> ImageSet:
    """Three words that everybody says and two of random letters.

    >>> babble_features().class_names
    ('babble',)
    """
    count, rng = check_generated(split, size), np.random.default_rng([4, split == "train"])
    texts = [" ".join((*rng.choice(_FILLERS, 3), *map("".join, rng.choice(_LETTERS, (2, 6))))) for _ in range(count)]
    return ImageSet("babble", _features(texts, size), np.zeros(count, np.int64), ("babble",))


@cache
def _requests(split: str, count: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng([3, split == "train"])
    words, labels = list(_INTENTS.values()), rng.integers(0, len(_INTENTS), count)
    return [" ".join((*rng.choice(_FILLERS, 3), *rng.choice(words[label], 2))) for label in labels], labels


def _features(texts: list[str], size: int) -> np.ndarray:
    return text_features(texts, _requests("train", check_generated("train", size))[0], size)


TEXT_SETS: Final[dict[str, Callable[..., ImageSet]]] = {"requests": request_features, "babble": babble_features}
