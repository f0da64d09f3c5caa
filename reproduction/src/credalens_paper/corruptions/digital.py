"""What camera and computer do to images, and the resampling of whole batches behind it.

Blur: out of focus, frosted glass, a moving and a zooming camera. Noise: Gaussian, Poisson, salt and pepper. Digital: low
contrast, elastic deformation, coarse pixels, JPEG artefacts.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

if TYPE_CHECKING:
    from PIL import Image

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


def draw_trails(images: Images, angles: Coordinates, /, *, radius: int, sigma: float) -> Images:
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
    return take_pixels(images, rows, np.arange(width) - steps[..., 1])


def motion_blur(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A Gaussian trail in a direction within 45 degrees of the horizontal."""
    radius, sigma = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))[severity - 1]
    angles = np.deg2rad(rng.uniform(-45, 45, len(images)))
    return draw_trails(images, angles, radius=radius, sigma=sigma)


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
        rows, columns = zoom_matrix(height, factor), zoom_matrix(width, factor)
        total = total + sparse.kron(sparse.csr_array(rows), sparse.csr_array(columns), format="csr")
    return total / np.float32(len(factors) + 1)


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
    return bilinear(warped, rows, columns, reflect)


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
    return bilinear(images, source[..., 0], source[..., 1], mirror)


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
