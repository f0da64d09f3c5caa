"""Weather: snow, frost, fog and bright light."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens_paper.corruptions import resample
from credalens_paper.corruptions.textures import frost_textures, plasma

Images = NDArray[np.float32]

_LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)


def snow(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A whitened image under driven flakes and the same flakes turned upside down."""
    mean, scale, zoom, threshold, radius, sigma, clear = (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    )[severity - 1]
    layer_rng, angle_rng = rng.spawn(2)
    layer = mean + scale * layer_rng.standard_normal(images.shape[:3], dtype=np.float32)
    flakes = _flakes(layer, zoom, threshold)
    angles = np.deg2rad(angle_rng.uniform(-135, -45, len(images)))
    flakes = resample.motion_blur(flakes, angles, radius=radius, sigma=sigma)
    white = np.maximum(images, (images @ _LUMINANCE)[..., None] * 1.5 + 0.5)
    return np.float32(clear) * images + np.float32(1 - clear) * white + flakes + flakes[:, ::-1, ::-1]


def _flakes(layer: Images, zoom: float, threshold: float) -> Images:
    _, height, width = layer.shape
    zoomed = resample.zoom_matrix(height, zoom) @ layer @ resample.zoom_matrix(width, zoom).T
    bright = np.where(zoomed < threshold, 0, np.clip(zoomed, 0, 1))
    return (np.floor(bright * 255) / 255)[..., None].astype(np.float32)


def frost(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """The image, dimmed, plus a random patch of a frost texture.

    The published files use six photographs of frost; these patches are cut from generated crystals.
    """
    image_share, frost_share = ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))[severity - 1]
    textures = frost_textures()
    n, height, width, _ = images.shape
    size = textures.shape[1]
    which, top, left = rng.integers(0, (len(textures), size, size), (n, 3)).T[:, :, None, None]
    rows = (top + np.arange(height)[:, None]) % size
    return image_share * images + np.float32(frost_share) * textures[which, rows, (left + np.arange(width)) % size]


def fog(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """The image plus a plasma fractal, scaled back to the brightest value it had."""
    density, decay = ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))[severity - 1]
    n, height, width, _ = images.shape
    size = 1 << (max(height, width) - 1).bit_length()
    cloud = plasma(n, size, decay=decay, rng=rng)[:, :height, :width, None]
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    return (images + np.float32(density) * cloud) * (brightest / (brightest + np.float32(density)))


def brightness(images: Images, severity: int, rng: np.random.Generator) -> Images:
    """A higher value V of the HSV colour at the same hue and saturation: all channels scaled alike."""
    added = np.float32((0.05, 0.1, 0.15, 0.2, 0.3)[severity - 1])
    value = images.max(axis=-1, keepdims=True)
    black = value == 0
    scale = np.minimum(value + added, 1) / np.where(black, 1, value)
    return np.where(black, added, images * scale)
