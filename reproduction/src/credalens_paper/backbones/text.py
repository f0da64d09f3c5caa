"""A network for features of texts."""

from __future__ import annotations

from typing import Final

from torch import nn

HIDDEN: Final = 128


def mlp(classes: int, /, *, features: int, width: float = 1.0) -> nn.Sequential:
    """One hidden layer."""
    hidden = max(1, round(HIDDEN * width))
    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes))
