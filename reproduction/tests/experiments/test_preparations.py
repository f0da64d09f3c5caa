"""Mistakes are what their words say, written out in floats."""

from __future__ import annotations

import numpy as np
import pytest

from credalens_paper.experiments.cell_keys import PREPARATIONS

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), np.uint8)
MEAN, STD = np.array([0.5, 0.4, 0.3]), np.array([0.25, 0.2, 0.5])
NORMAL = (IMAGES / 255 - MEAN) / STD
GIVEN = {
    "trained": NORMAL,
    "unit": IMAGES / 255,
    "bytes": IMAGES,
    "normalised_twice": (NORMAL - MEAN) / STD,
    "signed": IMAGES / 127.5 - 1,
    "bgr": (IMAGES[..., [2, 1, 0]] / 255 - MEAN) / STD,
    "swapped": NORMAL.transpose(0, 2, 1, 3),
    "labels": NORMAL[[0, 5, 1, 2, 3, 4]],
    "severest": NORMAL,
}


@pytest.mark.parametrize("name", PREPARATIONS)
def test_images_are_given_as_the_words_say(name):
    preparation = PREPARATIONS[name]
    mean, std = preparation.statistics((tuple(MEAN), tuple(STD)))
    np.testing.assert_allclose((preparation.arrange(IMAGES) / 255 - mean) / std, GIVEN[name], rtol=1e-9, atol=1e-9)
