"""Generated textures: the plasma fractal behind fog, and crystals in the place of photographs of frost."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float32]

_TEXTURES: Final = 5
_SIZE: Final = 256
_SEED: Final = 20190107  # fixed: a texture is a constant of the corruption, not a random draw


def plasma(count: int, size: int, /, *, decay: float, rng: np.random.Generator) -> Images:
    """Periodic height maps (count, size, size) in [0, 1] by diamonds and squares; `size` is a power of two.

    Each halving of the step adds uniform noise to the mean of four neighbours and divides its amplitude, which
    enters squared as in the published generator, by `decay`.
    """
    heights = np.zeros((count, size, size), np.float32)
    amplitude, step = 100.0, size
    streams = iter(rng.spawn(3 * size.bit_length()))
    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        square = corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, half::step] = _disturbed(square + np.roll(square, -1, axis=2), amplitude, next(streams))
        centres = heights[:, half::step, half::step]
        across = centres + np.roll(centres, 1, axis=1) + corners + np.roll(corners, -1, axis=2)
        heights[:, ::step, half::step] = _disturbed(across, amplitude, next(streams))
        along = centres + np.roll(centres, 1, axis=2) + corners + np.roll(corners, -1, axis=1)
        heights[:, half::step, ::step] = _disturbed(along, amplitude, next(streams))
        step, amplitude = half, amplitude / decay
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return heights / heights.max(axis=(1, 2), keepdims=True)


def _disturbed(total: Images, amplitude: float, rng: np.random.Generator) -> Images:
    noise = 2 * rng.random(total.shape, dtype=np.float32) - 1
    return total / 4 + np.float32(amplitude**2) * noise


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
