"""Images as bytes of one size: decoded and resized by Pillow, several at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

Pixels = NDArray[np.uint8]
Encoded = Path | bytes
T = TypeVar("T")


def resize_images(images: Pixels, size: int | None, /) -> Pixels:
    """Images (n, h, w, 3) at another size, by Pillow's bilinear filter with anti-aliasing."""
    from PIL import Image

    if size is None or images.shape[1:3] == (size, size):
        return np.ascontiguousarray(images)
    return _stack(lambda image: _fit(Image.fromarray(image), size, crop=False), list(images))


def decode_images(encoded: Sequence[Encoded], /, *, size: int | None = None, crop: bool = False) -> Pixels:
    """Image files, or their bytes, as one array; all must have one shape unless a size is given."""
    return _stack(lambda image: _decode(image, size, crop=crop), encoded)


def _decode(encoded: Encoded, size: int | None, *, crop: bool) -> Pixels:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded) as image:
            return _fit(image.convert("RGB"), size, crop=crop)
    except (OSError, UnidentifiedImageError) as error:
        name = encoded if isinstance(encoded, Path) else "an image"
        raise ValueError(f"{name} cannot be decoded: {error}") from error


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
