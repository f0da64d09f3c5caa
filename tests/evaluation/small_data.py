"""Sizes of the small data, and scores computed another way."""

from __future__ import annotations

from credalens import wrap

CLASSES = 4


ROWS = 120


def scores(probs, kind, measure):
    prediction = wrap(probs)
    return getattr(prediction if kind == "credal" else prediction.classical, measure)
