"""Inputs with labels: `ImageSet` in memory, `ImageSource` on disk and read in parts; images as bytes of one size."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from PIL import Image

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]
Features = NDArray[np.float32]
Inputs = NDArray[Any]  # pixels, or features of texts
Encoded = Path | bytes
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images (n, h, w, 3) of bytes, or features (n, size) of texts in float32, their labels (n,) and the class names."""

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
        if isinstance(self.images, np.ndarray):
            images = resize_images(self.images[chosen], self.size)
        else:
            images = decode_images(self.images(chosen), size=self.size, crop=self.crop)
        return ImageSet(self.name, images, self.labels[chosen], self.class_names)

    def load(self) -> ImageSet:
        """All images."""
        return self.take(np.arange(len(self)))


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


def resize_images(images: Pixels, size: int | None, /) -> Pixels:
    """Images (n, h, w, 3) at another size, by Pillow's bilinear filter with anti-aliasing."""
    from PIL import Image

    if size is None or images.shape[1:3] == (size, size):
        return np.ascontiguousarray(images)
    return _stack(lambda image: _fit(Image.fromarray(image), size, crop=False), list(images))


def decode_images(encoded: Sequence[Encoded], /, *, size: int | None = None, crop: bool = False) -> Pixels:
    """Image files, or their bytes, as one array; all must have one shape unless a size is given."""
    from PIL import Image, UnidentifiedImageError

    def decode(one: Encoded) -> Pixels:
        try:
            with Image.open(io.BytesIO(one) if isinstance(one, bytes) else one) as image:
                return _fit(image.convert("RGB"), size, crop=crop)
        except (OSError, UnidentifiedImageError) as error:
            raise ValueError(f"{one if isinstance(one, Path) else 'an image'} cannot be decoded: {error}") from error

    return _stack(decode, encoded)


def _stack(work: Callable[[T], Pixels], items: Sequence[T]) -> Pixels:
    """Pillow decodes and resizes outside the interpreter lock, so threads help."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        images = list(pool.map(work, items))
    shapes = {image.shape for image in images}
    if len(shapes) > 1:
        raise ValueError(f"the images have {len(shapes)} different shapes, such as {sorted(shapes)[:2]}; pass size=")
    return np.stack(images)


def _fit(image: Image.Image, size: int | None, *, crop: bool) -> Pixels:
    """The image at `size`; with `crop` its shorter side becomes 8/7 of it and the centre is cut, as 256 and 224 do."""
    from PIL import Image

    if size is None:
        return np.asarray(image)
    if not crop:
        return np.asarray(image.resize((size, size), Image.Resampling.BILINEAR))
    scale = round(size * 8 / 7) / min(image.size)
    width, height = (max(size, round(side * scale)) for side in image.size)
    left, top = (width - size) // 2, (height - size) // 2
    enlarged = image.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(enlarged.crop((left, top, left + size, top + size)))
