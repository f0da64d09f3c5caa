"""Blur: out of focus, through frosted glass, of a moving and of a zooming camera."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

from credalens_paper.corruptions import resample

Images = NDArray[np.float32]


def defocus_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Convolution with a disk whose edge is softened by a 3 x 3 Gaussian."""
    radius, softness = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))[severity - 1]
    grid = np.arange(-2, 3)
    disk = (grid[:, None] ** 2 + grid**2 <= radius**2).astype(np.float64)
    edge = np.exp(-(np.arange(-1, 2) ** 2) / (2 * softness**2))
    edge /= edge.sum()
    kernel = ndimage.convolve(disk / disk.sum(), np.outer(edge, edge), mode="constant").astype(np.float32)
    _, height, width, _ = images.shape
    reach = len(kernel) // 2
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)), mode="reflect")
    blurred = np.zeros_like(images)
    for row, column in np.argwhere(kernel > 0):
        blurred += kernel[row, column] * padded[:, row : row + height, column : column + width]
    return blurred


def glass_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """Blur, displace every inner pixel by at most one, once or twice, and blur again.

    In the published files a pixel takes the value of itself or of a neighbour above, to the left, or both.
    """
    sigma, rounds = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))[severity - 1]
    shuffled = np.floor(_gaussian(images, sigma) * 255 + 1e-3, dtype=np.float32) / 255
    for draw in rng.spawn(rounds):
        shuffled = _displace(shuffled, draw)
    return _gaussian(shuffled, sigma)


def _gaussian(images: Images, sigma: float) -> Images:
    blurred: Images = ndimage.gaussian_filter(images, (0, sigma, sigma, 0), mode="nearest")
    return blurred


def _displace(images: Images, rng: np.random.Generator) -> Images:
    n, height, width, _ = images.shape
    steps = rng.integers(0, 2, (n, height, width, 2), dtype=np.int8)
    steps[:, :2] = steps[:, :, :2] = 0
    rows = np.arange(height)[:, None] - steps[..., 0]
    return resample.take_pixels(images, rows, np.arange(width) - steps[..., 1])


def motion_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A Gaussian trail in a direction within 45 degrees of the horizontal."""
    radius, sigma = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))[severity - 1]
    angles = np.deg2rad(rng.uniform(-45, 45, len(images)))
    return resample.motion_blur(images, angles, radius=radius, sigma=sigma)


def zoom_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """The mean of the image and of its central zooms by 1.00, 1.01, ... up to a largest factor."""
    n, height, width, channels = images.shape
    stop = (1.06, 1.11, 1.16, 1.21, 1.26)[severity - 1]
    columns = images.transpose(1, 2, 0, 3).reshape(height * width, n * channels)
    blurred = _zooms(height, width, stop) @ columns
    return blurred.reshape(height, width, n, channels).transpose(2, 0, 1, 3)


@cache
def _zooms(height: int, width: int, stop: float) -> Any:
    """All zooms are linear, so their mean is one sparse matrix on the pixels."""
    factors = np.arange(1, stop, 0.01)
    total = sparse.identity(height * width, dtype=np.float32, format="csr")
    for factor in factors:
        rows, columns = resample.zoom_matrix(height, factor), resample.zoom_matrix(width, factor)
        total = total + sparse.kron(sparse.csr_array(rows), sparse.csr_array(columns), format="csr")
    return total / np.float32(len(factors) + 1)
