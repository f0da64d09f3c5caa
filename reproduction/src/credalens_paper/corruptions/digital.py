"""Noise (Gaussian, Poisson, salt and pepper), and digital: low contrast, elastic deformation, coarse pixels, JPEG artefacts."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from credalens_paper.corruptions import blur

if TYPE_CHECKING:
    from PIL import Image

Images = NDArray[np.float32]


def gaussian_noise(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Independent normal noise on every value."""
    scale = (0.04, 0.06, 0.08, 0.09, 0.10)[severity - 1]
    return images + np.float32(scale) * rng.standard_normal(images.shape, dtype=np.float32)


def shot_noise(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Photon counting: a Poisson count with mean `photons * value`, divided by `photons`."""
    photons = (500, 250, 100, 75, 50)[severity - 1]
    return rng.poisson(images * photons).astype(np.float32) / np.float32(photons)


def impulse_noise(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A share of the values becomes 0 or 1, each with equal chance."""
    share = (0.01, 0.02, 0.03, 0.05, 0.07)[severity - 1]
    draw = rng.random(images.shape, dtype=np.float32)
    return np.where(draw < share, (draw < share / 2).astype(np.float32), images)


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
    sigma = (0, smoothness * side, smoothness * side)
    fields = (ndimage.gaussian_filter(draw.uniform(-1, 1, images.shape[:3]), sigma, truncate=3) for draw in field_rngs)
    down, right = (strength * side * field for field in fields)
    _, height, width, _ = images.shape
    rows, columns = np.arange(height)[:, None] + down, np.arange(width) + right
    return blur.bilinear(warped, rows, columns, blur.reflect)


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
    return blur.bilinear(images, source[..., 0], source[..., 1], blur.mirror)


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
    from PIL import Image

    quality = (80, 65, 58, 50, 40)[severity - 1]

    def through_jpeg(image: Image.Image) -> Image.Image:
        stored = io.BytesIO()
        image.save(stored, "JPEG", quality=quality)
        return Image.open(stored)

    return _each(images, through_jpeg)


def _each(images: Images, change: Callable[[Image.Image], Image.Image]) -> Images:
    from PIL import Image

    pixels = np.rint(images * 255).astype(np.uint8)
    changed = np.stack([np.asarray(change(Image.fromarray(image))) for image in pixels])
    return changed.astype(np.float32) / np.float32(255)
