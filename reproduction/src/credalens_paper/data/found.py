"""What a layout found on disk, and how its images become bytes of one size."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

Encoded = Sequence[Path | bytes]
Pixels = NDArray[np.uint8]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Found:
    """Labels and images of one split: pixels in memory, or a function that fetches encoded images by index."""

    where: Path
    images: Pixels | Callable[[NDArray[np.intp]], Encoded]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]

    def read(self, indices: NDArray[np.intp], *, size: int | None, crop: bool) -> Pixels:
        """The images at these indices, decoded and of the asked size."""
        if isinstance(self.images, np.ndarray):
            return resized(self.images[indices], size)
        return decoded(self.images(indices), size=size, crop=crop)


def resized(images: Pixels, size: int | None) -> Pixels:
    """Images (n, h, w, 3) at another size, by Pillow's bilinear filter with anti-aliasing."""
    from PIL import Image

    if size is None or images.shape[1:3] == (size, size):
        return np.ascontiguousarray(images)
    return _stacked(lambda image: _fit(Image.fromarray(image), size, crop=False), list(images))


def decoded(encoded: Encoded, *, size: int | None, crop: bool) -> Pixels:
    """Encoded images as one array; all must have one shape unless a size is asked for."""
    from PIL import Image, UnidentifiedImageError

    def decode(one: Path | bytes) -> Pixels:
        try:
            with Image.open(io.BytesIO(one) if isinstance(one, bytes) else one) as image:
                return _fit(image.convert("RGB"), size, crop=crop)
        except (OSError, UnidentifiedImageError) as error:
            raise ValueError(f"{one if isinstance(one, Path) else 'an image'} cannot be decoded: {error}") from error

    return _stacked(decode, encoded)


def _stacked(work: Callable[[T], Pixels], items: Sequence[T]) -> Pixels:
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
