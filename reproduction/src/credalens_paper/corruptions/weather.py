"""Weather: snow, frost, fog and bright light; the plasma fractal behind fog, crystals in the place of photographs of frost."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.corruptions import digital

Images = NDArray[np.float32]

_TEXTURES: Final = 5
_SIZE: Final = 256
_SEED: Final = 20190107  # fixed: a texture is a constant of the corruption, not a random draw
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
    zoomed = digital.zoom_matrix(layer.shape[1], zoom) @ layer @ digital.zoom_matrix(layer.shape[2], zoom).T
    bright = np.where(zoomed < threshold, 0, np.clip(zoomed, 0, 1))
    flakes = (np.floor(bright * 255) / 255)[..., None].astype(np.float32)
    angles = np.deg2rad(angle_rng.uniform(-135, -45, len(images)))
    flakes = digital.draw_trails(flakes, angles, radius=radius, sigma=sigma)
    white = np.maximum(images, (images @ _LUMINANCE)[..., None] * 1.5 + 0.5)
    return np.float32(clear) * images + np.float32(1 - clear) * white + flakes + flakes[:, ::-1, ::-1]


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


def plasma(count: int, size: int, /, *, decay: float, rng: np.random.Generator) -> Images:
    """Periodic height maps (count, size, size) in [0, 1] by diamonds and squares; `size` is a power of two.

    Each halving of the step adds uniform noise to the mean of four neighbours and divides its amplitude, which
    enters squared as in the published generator, by `decay`.
    """

    def disturbed(total: Images) -> Images:
        noise = 2 * next(streams).random(total.shape, dtype=np.float32) - 1
        return total / 4 + np.float32(amplitude**2) * noise

    heights = np.zeros((count, size, size), np.float32)
    amplitude, step = 100.0, size
    streams = iter(rng.spawn(3 * size.bit_length()))
    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        square = corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, half::step] = disturbed(square + np.roll(square, -1, axis=2))
        centres = heights[:, half::step, half::step]
        across = centres + np.roll(centres, 1, axis=1) + corners + np.roll(corners, -1, axis=2)
        heights[:, ::step, half::step] = disturbed(across)
        along = centres + np.roll(centres, 1, axis=2) + corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, ::step] = disturbed(along)
        step, amplitude = half, amplitude / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return heights / heights.max(axis=(1, 2), keepdims=True)


@cache
def frost_textures() -> Images:
    """Five periodic frost textures (5, 256, 256, 3) in [0, 1]: pale crystals over a darker blue."""
    return np.stack([_frost(np.random.default_rng([_SEED, index])) for index in range(_TEXTURES)])


def _frost(rng: np.random.Generator) -> Images:
    """Needles along three axes, each where it is the strongest, over a cloudy ground."""
    cloud_rng, *needle_rngs = rng.spawn(4)
    turn = rng.uniform(0, np.pi)
    needles = [_needles(turn + k * np.pi / 3, draw) for k, draw in enumerate(needle_rngs)]
    cloud = plasma(1, _SIZE, decay=1.9, rng=cloud_rng)[0]
    ice = np.clip(0.6 * cloud + 0.9 * np.max(needles, axis=0) - 0.15, 0, 1)
    dark, pale = np.array([0.08, 0.14, 0.24], np.float32), np.array([0.92, 0.96, 1.0], np.float32)
    return (dark + ice[..., None] * (pale - dark)).astype(np.float32)


def _needles(angle: float, rng: np.random.Generator) -> Images:
    """Ridges of noise that is smooth along one direction and rough across it."""
    across, along = np.meshgrid(np.fft.fftfreq(_SIZE), np.fft.fftfreq(_SIZE))
    smooth_axis = np.cos(angle) * across + np.sin(angle) * along
    rough_axis = -np.sin(angle) * across + np.cos(angle) * along
    passes = np.exp(-((smooth_axis / 0.02) ** 2) / 2 - (rough_axis / 0.2) ** 2 / 2)
    noise = np.fft.ifft2(np.fft.fft2(rng.standard_normal((_SIZE, _SIZE))) * passes).real
    noise /= noise.std()
    return (np.clip(noise - 0.5, 0, 2) / 2).astype(np.float32)
