"""The 15 corruptions x 5 severities of CIFAR-10-C, generated: `corrupt(images, name, severity, seed=0)`.

The parameters are the published CIFAR ones (Hendrycks and Dietterich, 2019, Benchmarking neural network robustness
to common corruptions and perturbations). What cannot be the same as the published files: the random draws, and
the frost, whose photographs are not free to ship and are replaced by generated crystals (`weather.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens_paper.corruptions import digital, weather

Corruption = Callable[[NDArray[np.float32], int, np.random.Generator], NDArray[np.float32]]

_CORRUPTIONS: Final[dict[str, Corruption]] = {
    "gaussian_noise": digital.gaussian_noise,
    "shot_noise": digital.shot_noise,
    "impulse_noise": digital.impulse_noise,
    "defocus_blur": digital.defocus_blur,
    "glass_blur": digital.glass_blur,
    "motion_blur": digital.motion_blur,
    "zoom_blur": digital.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": weather.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
}

CORRUPTIONS: Final = tuple(_CORRUPTIONS)
SEVERITIES: Final = (1, 2, 3, 4, 5)
_SMALLEST: Final = 8
_CHUNK: Final = 500  # images at a time: the working set stays in cache, and memory stays flat


def corrupt(images: NDArray[np.uint8], name: str, severity: int, /, *, seed: int = 0) -> NDArray[np.uint8]:
    """Images (n, h, w, 3) under one corruption: deterministic in the seed, image by image.

    Image i depends only on itself, i and the seed, so the corruption of the first k images is the first k
    corrupted images. Lengths in the parameters are pixels of a 32-pixel image, as published.
    """
    images = np.asarray(images)
    check_corruption(name, severity)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
        raise ValueError(f"images must be uint8 of shape (n, h, w, 3), got {images.dtype} of shape {images.shape}")
    if min(images.shape[1:3]) < _SMALLEST:
        raise ValueError(f"images must be at least {_SMALLEST} pixels high and wide, got shape {images.shape}")
    if seed < 0:
        raise ValueError(f"the seed must not be negative, got {seed}")
    corrupted = np.empty_like(images)
    for chunk, start in enumerate(range(0, len(images), _CHUNK)):
        part = slice(start, start + _CHUNK)
        rng = np.random.default_rng([seed, CORRUPTIONS.index(name), severity, chunk])
        scaled = images[part].astype(np.float32) / np.float32(255)
        changed = np.clip(_CORRUPTIONS[name](scaled, severity, rng), 0, 1)
        # The published files were cut, not rounded, to bytes; the small step keeps x / 255 * 255 at x in float32.
        corrupted[part] = (changed * 255 + 1e-3).astype(np.uint8)
    return corrupted


def check_corruption(name: str, severity: int, /) -> None:
    """Refuse corruptions and severities that there are not."""
    if name not in _CORRUPTIONS:
        raise ValueError(f"unknown corruption {name!r}; there are {', '.join(CORRUPTIONS)}")
    if severity not in SEVERITIES:
        raise ValueError(f"severity is one of {SEVERITIES}, got {severity!r}")
