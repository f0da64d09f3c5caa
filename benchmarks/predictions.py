"""Predictions to time on: peaked like a trained network's, and flat ones that are hard."""

from __future__ import annotations

import numpy as np


def realistic(members: int, rows: int, classes: int, seed: int = 0) -> np.ndarray:
    """Softmax of logits that members share up to noise, with one class ahead by a varying margin; float32."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.normal(size=(1, rows, classes)) + rng.normal(size=(members, rows, classes))
    ahead = rng.integers(0, classes, rows)
    logits[:, np.arange(rows), ahead] += 8 * rng.random(rows) + np.log(classes)
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True)).astype(np.float32)


def flat(members: int, rows: int, classes: int, seed: int = 0) -> np.ndarray:
    """Independent uniform draws from the simplex: members that agree on nothing."""
    return np.random.default_rng(seed).dirichlet(np.ones(classes), (members, rows)).astype(np.float32)
