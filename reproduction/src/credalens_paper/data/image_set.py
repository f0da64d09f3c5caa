"""Inputs with labels: `ImageSet` in memory, `ImageSource` on disk and read in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from credalens_paper.data.pixels import Encoded, Pixels, decode_images, resize_images

Labels = NDArray[np.int64]
Features = NDArray[np.float32]
Inputs = NDArray[Any]
"""Pixels, or features of texts."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images (n, h, w, 3) of bytes, or features (n, size) of texts in float32, their labels (n,) and the names of the classes.

    >>> cats = ImageSet("cats", np.zeros((2, 8, 8, 3), np.uint8), np.array([0, 1]), ("tabby", "tiger"))
    >>> len(cats), len(cats.take([1]))
    (2, 1)
    """

    name: str
    images: Inputs
    labels: Labels
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        is_image = self.images.dtype == np.uint8 and self.images.ndim == 4 and self.images.shape[-1] == 3
        if not is_image and not (self.images.dtype == np.float32 and self.images.ndim == 2):
            raise ValueError(
                f"images of {self.name} must be uint8 of shape (n, h, w, 3), or features of texts float32 of shape "
                f"(n, size), got {self.images.dtype} of shape {self.images.shape}"
            )
        _check_labels(self.name, self.labels, len(self.images), len(self.class_names))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: ArrayLike, /) -> ImageSet:
        """The images at these indices, in their order."""
        chosen = np.asarray(indices)
        return ImageSet(self.name, self.images[chosen], self.labels[chosen], self.class_names)


@dataclass(frozen=True, eq=False)
class ImageSource:
    """A set on disk: labels are in memory, images are read when asked for. For sets larger than memory.

    `images` are pixels, or a function from indices to encoded images; both are resized to `size` when they are read.
    """

    name: str
    images: Pixels | Callable[[NDArray[np.intp]], Sequence[Encoded]]
    labels: Labels
    class_names: tuple[str, ...]
    size: int | None = None
    crop: bool = False

    def __post_init__(self) -> None:
        _check_labels(self.name, self.labels, len(self.labels), len(self.class_names))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: ArrayLike, /) -> ImageSet:
        """The images at these indices, in their order; neighbours are quicker to read than scattered ones."""
        chosen = np.arange(len(self))[np.asarray(indices)]
        return ImageSet(self.name, self._read(chosen), self.labels[chosen], self.class_names)

    def load(self) -> ImageSet:
        """All images."""
        return self.take(np.arange(len(self)))

    def _read(self, indices: NDArray[np.intp]) -> Pixels:
        if isinstance(self.images, np.ndarray):
            return resize_images(self.images[indices], self.size)
        return decode_images(self.images(indices), size=self.size, crop=self.crop)


def _check_labels(name: str, labels: Labels, count: int, classes: int) -> None:
    """Refuse labels that are not one int64 in [0, classes) for each image."""
    if labels.dtype != np.int64 or labels.shape != (count,):
        raise ValueError(
            f"labels of {name} must be int64 of shape ({count},), got {labels.dtype} of shape {labels.shape}"
        )
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        raise ValueError(
            f"{wrong.size} of {count} labels of {name} are not in [0, {classes}); "
            f"the first is {labels[wrong[0]]} at index {wrong[0]}"
        )
