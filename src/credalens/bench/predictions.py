"""Predictions to time on: peaked like a trained network's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["realistic"]


def realistic(members: int, rows: int, classes: int, seed: int = 0) -> NDArray[np.float64]:
    """Softmax of logits that members share up to noise, with one class ahead by a varying margin."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.normal(size=(1, rows, classes)) + rng.normal(size=(members, rows, classes))
    ahead = rng.integers(0, classes, rows)
    logits[:, np.arange(rows), ahead] += 8 * rng.random(rows) + np.log(classes)
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)
