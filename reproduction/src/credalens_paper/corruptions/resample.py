"""Resampling of whole batches at once: bilinear sampling, motion blur, central zoom."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Images = NDArray[np.float32]
Coordinates = NDArray[np.float64]
Indices = NDArray[np.intp]


def take_pixels(images: Images, rows: Indices, columns: Indices, /) -> Images:
    """Pixels of each image at its own rows and columns, (n, h, w) indices, as (n, h, w, channels)."""
    n, height, width, channels = images.shape
    first = (np.arange(n) * height * width)[:, None, None]
    return np.take(images.reshape(-1, channels), first + rows * width + columns, axis=0)


def mirror(indices: Indices, size: int, /) -> Indices:
    """Indices folded into the image by reflection about its outermost pixels: d c b | a b c d | c b a."""
    folded = indices % (2 * size - 2)
    return np.minimum(folded, 2 * size - 2 - folded)


def reflect(indices: Indices, size: int, /) -> Indices:
    """Indices folded into the image by reflection about its border: c b a | a b c d | d c b."""
    folded = indices % (2 * size)
    return np.minimum(folded, 2 * size - 1 - folded)


def bilinear(
    images: Images, rows: Coordinates, columns: Coordinates, fold: Callable[[Indices, int], Indices], /
) -> Images:
    """Values between the pixels at fractional (n, h, w) coordinates; `fold` is `mirror` or `reflect`."""
    _, height, width, _ = images.shape
    top, left = np.floor(rows).astype(np.intp), np.floor(columns).astype(np.intp)
    down = (rows - top).astype(np.float32)[..., None]
    right = (columns - left).astype(np.float32)[..., None]
    rows_near, rows_far = fold(top, height), fold(top + 1, height)
    columns_near, columns_far = fold(left, width), fold(left + 1, width)
    upper = _blend(take_pixels(images, rows_near, columns_near), take_pixels(images, rows_near, columns_far), right)
    lower = _blend(take_pixels(images, rows_far, columns_near), take_pixels(images, rows_far, columns_far), right)
    return _blend(upper, lower, down)


def _blend(near: Images, far: Images, share: Images) -> Images:
    far -= near
    far *= share
    far += near
    return far


def motion_blur(images: Images, angles: Coordinates, /, *, radius: int, sigma: float) -> Images:
    r"""A one-sided Gaussian trail along each image's own direction, as ImageMagick draws it.

    .. math:: y(r, c) = \sum_{i=0}^{2 R} g_i\, x(r + [i \sin\theta], c + [i \cos\theta]), \quad
              g_i \propto e^{-i^2 / 2 \sigma^2}

    Coordinates are rounded to pixels and stay at the border beyond it.
    """
    _, height, width, _ = images.shape
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    blurred = np.zeros_like(images)
    for step in steps[weights > 1e-5]:
        down = np.ceil(step * np.sin(angles) - 0.5).astype(np.intp)[:, None, None]
        right = np.ceil(step * np.cos(angles) - 0.5).astype(np.intp)[:, None, None]
        rows = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
        columns = np.clip(np.arange(width) + right, 0, width - 1)
        blurred += np.float32(weights[step]) * take_pixels(images, rows, columns)
    return blurred


@cache
def zoom_matrix(size: int, factor: float, /) -> Images:
    """The linear map that zooms one axis into its centre and cuts it back to `size`."""
    central = int(np.ceil(size / factor))
    top = (size - central) // 2
    inside = ndimage.zoom(np.eye(central, dtype=np.float32), (factor, 1), order=1)
    trim = (len(inside) - size) // 2
    matrix = np.zeros((size, size), np.float32)
    matrix[:, top : top + central] = inside[trim : trim + size]
    return matrix
