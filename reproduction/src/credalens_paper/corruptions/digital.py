"""Digital: low contrast, elastic deformation, coarse pixels and JPEG artefacts."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from credalens_paper.corruptions import resample

if TYPE_CHECKING:
    from PIL import Image

Images = NDArray[np.float32]


def contrast(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Every value moved towards the mean of its channel."""
    share = np.float32((0.75, 0.5, 0.4, 0.3, 0.15)[severity - 1])
    mean = images.mean(axis=(1, 2), keepdims=True)
    return (images - mean) * share + mean


def elastic_transform(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A random affine map, then a smooth random displacement; lengths are shares of the image side."""
    strength, smoothness, shear = (
        (0, 0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    )[severity - 1]
    affine_rng, *field_rngs = rng.spawn(3)
    side = min(images.shape[1:3])
    warped = _affine(images, shear * side, affine_rng)
    if strength == 0:
        return warped
    down, right = (strength * side * _smooth_field(images.shape[:3], smoothness * side, draw) for draw in field_rngs)
    _, height, width, _ = images.shape
    rows, columns = np.arange(height)[:, None] + down, np.arange(width) + right
    return resample.bilinear(warped, rows, columns, resample.reflect)


def _smooth_field(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> NDArray[np.float64]:
    field: NDArray[np.float64] = ndimage.gaussian_filter(
        rng.uniform(-1, 1, shape), (0, sigma, sigma), mode="reflect", truncate=3
    )
    return field


def _affine(images: Images, shear: float, rng: np.random.Generator) -> Images:
    """Three points about the centre move by up to `shear`; the image follows."""
    n, height, width, _ = images.shape
    third = min(height, width) // 3
    middle = np.array([height // 2, width // 2], np.float64)
    before = middle + third * np.array([[1, 1], [1, -1], [-1, -1]])
    after = before + rng.uniform(-shear, shear, (n, 3, 2))
    # [row, column, 1] of the target times `inverse` gives its place in the source
    inverse = np.linalg.solve(np.concatenate([after, np.ones((n, 3, 1))], axis=-1), before[None])
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    target = np.stack([rows, columns, np.ones_like(rows)], axis=-1).reshape(-1, 3).astype(np.float64)
    source = (target @ inverse).reshape(n, height, width, 2)
    return resample.bilinear(images, source[..., 0], source[..., 1], resample.mirror)


def pixelate(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Shrunk and enlarged again, both by the box filter."""
    from PIL import Image

    share = (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1]
    _, height, width, _ = images.shape
    small = int(width * share), int(height * share)
    box = Image.Resampling.BOX
    return _each(images, lambda image: image.resize(small, box).resize((width, height), box))


def jpeg_compression(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Stored as JPEG of low quality and read back."""
    quality = (80, 65, 58, 50, 40)[severity - 1]
    return _each(images, lambda image: _through_jpeg(image, quality))


def _through_jpeg(image: Image.Image, quality: int) -> Image.Image:
    from PIL import Image

    stored = io.BytesIO()
    image.save(stored, "JPEG", quality=quality)
    return Image.open(stored)


def _each(images: Images, change: Callable[[Image.Image], Image.Image]) -> Images:
    from PIL import Image

    pixels = np.rint(images * 255).astype(np.uint8)
    changed = np.stack([np.asarray(change(Image.fromarray(image))) for image in pixels])
    return changed.astype(np.float32) / np.float32(255)
