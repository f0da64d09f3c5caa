"""Images that are not digits, of the size of the digits: letters, pieces of photos, textures, and corrupted digits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.float64]
SIZE = 8
FINE = 4
"""Letters are drawn this many times finer and then averaged."""
LETTERS = "ACEFHJKMNPRTUVWXY"  # without those that can pass for a digit, such as O, I, S, Z and B
FONTS = ("DejaVu Sans", "DejaVu Serif", "DejaVu Sans Mono", "STIXGeneral")


def make_all(
    test_digits: Images, count: int, rng: np.random.Generator, /, *, report: Callable[[int, int], None]
) -> dict[str, Images]:
    """``count`` images of three kinds and the corrupted test digits; ``report`` is called with how many kinds are done."""
    makers = {
        "letters": partial(letters, count),
        "photos": partial(photos, count),
        "textures": partial(textures, count),
        "corrupted digits": partial(corrupted, test_digits),
    }
    images = {}
    report(0, len(makers))
    for name, make in makers.items():
        images[name] = make(rng)
        report(len(images), len(makers))
    return images


def letters(count: int, rng: np.random.Generator, /) -> Images:
    """Bold capital letters of four fonts, turned and stretched a little, in the stroke and size of the digits."""
    return np.stack([_letter(LETTERS[n % len(LETTERS)], rng) for n in range(count)])


def _letter(character: str, rng: np.random.Generator) -> Images:
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    font = FontProperties(family=str(rng.choice(FONTS)), weight="bold")
    path = TextPath((0, 0), character, size=1, prop=font)
    outline = Path(_placed(np.asarray(path.vertices), rng), path.codes)
    side = (np.arange(SIZE * FINE) + 0.5) / (SIZE * FINE)
    grid = np.stack(np.meshgrid(side, side[::-1]), axis=-1).reshape(-1, 2)
    ink = np.zeros(len(grid), dtype=bool)
    for part in outline.to_polygons():
        ink ^= Path(part).contains_points(grid)  # a contour inside another is a hole
    return ink.reshape(SIZE, FINE, SIZE, FINE).mean(axis=(1, 3))


def _placed(points: Images, rng: np.random.Generator) -> Images:
    """In the middle of the unit square, as narrow as the digits are."""
    low, high = points.min(axis=0), points.max(axis=0)
    centred = (points - (low + high) / 2) / (high - low).max()
    angle = rng.uniform(-0.2, 0.2)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    placed: Images = centred @ turn * rng.uniform(0.85, 1.0) * np.array([0.75, 1.0]) + 0.5
    return placed


def photos(count: int, rng: np.random.Generator, /) -> Images:
    """Square pieces of scikit-learn's two sample photos, at four scales, grey, with full contrast."""
    from sklearn.datasets import load_sample_images

    pictures = [picture.mean(axis=-1) for picture in load_sample_images().images]
    pieces = [_piece(pictures[n % len(pictures)], int(rng.choice((8, 16, 32, 48))), rng) for n in range(count)]
    return _contrast(np.stack(pieces))


def _piece(picture: Images, side: int, rng: np.random.Generator) -> Images:
    top, left = (int(rng.integers(length - side)) for length in picture.shape)
    cell = side // SIZE
    return picture[top : top + side, left : left + side].reshape(SIZE, cell, SIZE, cell).mean(axis=(1, 3))


def _contrast(images: Images) -> Images:
    low, high = (edge(images, axis=(1, 2), keepdims=True) for edge in (np.min, np.max))
    stretched: Images = (images - low) / np.maximum(high - low, 1e-9)
    return stretched


def textures(count: int, rng: np.random.Generator, /) -> Images:
    """Stripes and, where two kinds of stripes cross, checks, of random direction, width and sharpness."""
    side = np.arange(SIZE) / SIZE
    y, x = side[:, None], side[None, :]
    waves = np.empty((count, 2, SIZE, SIZE))
    for wave in waves.reshape(-1, SIZE, SIZE):
        angle, cycles, phase = rng.uniform(0, np.pi), rng.uniform(1.0, 3.5), rng.uniform(0, 2 * np.pi)
        wave[:] = np.sin(2 * np.pi * cycles * (x * np.cos(angle) + y * np.sin(angle)) + phase)
    checks = rng.random(count) < 0.5
    mixed = np.where(checks[:, None, None], waves[:, 0] * waves[:, 1], waves[:, 0])
    return 0.5 + 0.5 * np.tanh(rng.uniform(1, 4, size=(count, 1, 1)) * mixed)


def corrupted(digits: Images, rng: np.random.Generator, /) -> Images:
    """The test digits, spoilt in turn by noise, blur, a covered half, and inverted brightness; none was seen in training."""
    from scipy.ndimage import gaussian_filter

    images = digits.copy()
    images[0::4] = np.clip(images[0::4] + rng.normal(0, 0.35, size=images[0::4].shape), 0, 1)
    images[1::4] = gaussian_filter(images[1::4], (0, 1.3, 1.3))
    images[2::4, :, SIZE // 2 :] = 0
    images[3::4] = 1 - images[3::4]
    return images
