"""Noise: Gaussian, shot (Poisson) and impulse (salt and pepper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
