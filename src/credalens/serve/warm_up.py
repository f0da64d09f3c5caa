"""Compile what predictions need before the first request comes: afterwards it is read from the disk."""

from __future__ import annotations

import numpy as np

from credalens.core.members import MemberSummary
from credalens.prediction import wrap


def warm_up() -> None:
    """Make a prediction in each precision, from members and from a summary of them."""
    for dtype in (np.float32, np.float64):
        probs = np.array([[[0.5, 0.25, 0.25]], [[0.25, 0.25, 0.5]]], dtype)
        wrap(probs).predict_set()
        MemberSummary().update(probs).prediction()
