"""One evaluation of small data, for every test that looks at a part of it."""

from __future__ import annotations

import numpy as np
import pytest

from credalens.evaluation import (
    evaluate,
)
from tests.evaluation.small_data import CLASSES, ROWS
from tests.strategies import batch_of


@pytest.fixture(scope="session")
def data():
    rng = np.random.default_rng(0)
    known = batch_of("peaked", 5, ROWS, CLASSES, seed=1)
    guess = known.mean(axis=0).argmax(axis=-1)
    labels = np.where(rng.random(ROWS) < 0.8, guess, rng.integers(0, CLASSES, ROWS))
    others = {"flat": batch_of("flat", 5, 90, CLASSES, seed=2), "mixed": batch_of("mixed", 5, 60, CLASSES, seed=3)}
    return known, labels, others


@pytest.fixture(scope="session")
def found(data):
    known, labels, others = data
    return evaluate(known, others, labels=labels, replicates=60)
