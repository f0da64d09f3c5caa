"""Fewer points for the same picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.checks.options import check_count


def thin(x: NDArray[np.float64], y: NDArray[np.float64], points: int | None, /) -> NDArray[np.intp]:
    """Indices of at most ``points`` points, both ends among them, spread evenly along the curve."""
    if points is None or len(x) <= check_count(points, "points", least=2):
        return np.arange(len(x))
    length = np.append(0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y))))
    wanted = np.linspace(0.0, length[-1], points)[1:-1]
    return np.unique(np.concatenate([[0], np.searchsorted(length, wanted), [len(x) - 1]]))
