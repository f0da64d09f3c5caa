"""The geometry of three classes: the triangle, the credal polygon, the convex hull of the members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.intervals import read_intervals
from credalens.plots.inputs import as_members

Array = NDArray[np.float64]

CORNERS: Final[Array] = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where certainty in class 0, 1 and 2 lies in the plane: an equilateral triangle of side one."""

ROUNDING: Final = 1e-12


def to_plane(probabilities: Any, /) -> Array:
    """Distributions over three classes, (..., 3), as points of the plane, (..., 2).

    >>> to_plane([0.5, 0.5, 0.0])
    array([0.5, 0. ])
    """
    points: Array = np.asarray(probabilities, dtype=np.float64) @ CORNERS
    return points


def merge_to_three(members: Any, /, *, classes: Sequence[int]) -> Array:
    """Keep two classes and add up the rest, so that any prediction fits in the triangle.

    The paper shows CIFAR10 this way, as airplane, automobile and others.

    >>> merge_to_three([[0.1, 0.2, 0.3, 0.4]], classes=(3, 0))
    array([[0.4, 0.1, 0.5]])
    """
    array = as_members(members)
    first, second = _two_classes(classes, array.shape[1])
    rest = np.delete(array, [first, second], axis=1).sum(axis=1)
    return np.stack([array[:, first], array[:, second], rest], axis=1)


def _two_classes(classes: Sequence[int], count: int) -> tuple[int, int]:
    if count < 3:
        raise ValueError(f"members must have at least 3 classes to merge the rest, got {count}.")
    pair = tuple(int(k) for k in classes)
    if len(pair) != 2 or len(set(pair)) != 2 or not all(0 <= k < count for k in pair):
        raise ValueError(f"classes must be two different indices from 0 to {count - 1}, got {tuple(classes)}.")
    return pair[0], pair[1]


def credal_polygon(lower: Any, upper: Any, /) -> Array:
    r"""The vertices of :math:`\{p : l \le p \le u, \sum_k p_k = 1\}` for three classes, in order around it, (v, 3).

    The triangle is clipped by the six half planes :math:`p_k \ge l_k` and :math:`p_k \le u_k`, so v is at most 6;
    1 where the bounds meet in a point, 2 where they leave a segment.

    >>> credal_polygon([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])
    array([[0.2, 0.3, 0.5]])
    """
    low, high = _three_bounds(lower, upper)
    polygon: Array = np.eye(3)
    for k in range(3):
        polygon = _clip(polygon, polygon[:, k] - low[k])
        polygon = _clip(polygon, high[k] - polygon[:, k])
    return _without_repeats(polygon)


def _three_bounds(lower: Any, upper: Any) -> tuple[Array, Array]:
    bounds = read_intervals(lower, upper, reachable=False)
    if bounds.batch or bounds.lower.shape[-1] != 3:
        shape = (*bounds.batch, bounds.lower.shape[-1])
        raise ValueError(f"a triangle needs the bounds of one input over 3 classes, got shape {shape}.")
    return bounds.lower[0], bounds.upper[0]


def _clip(polygon: Array, inside: Array) -> Array:
    """One step of Sutherland and Hodgman: keep the part of the polygon where `inside` >= 0."""
    kept: list[Array] = []
    for i in range(len(polygon)):
        here, there = inside[i - 1], inside[i]
        if (here >= -ROUNDING) != (there >= -ROUNDING):
            step = np.clip(here / (here - there), 0.0, 1.0)
            kept.append(polygon[i - 1] + step * (polygon[i] - polygon[i - 1]))
        if there >= -ROUNDING:
            kept.append(polygon[i])
    return np.array(kept).reshape(-1, 3)


def _without_repeats(polygon: Array) -> Array:
    """Drop vertices that repeat an earlier one up to rounding; the order around the polygon stays."""
    kept: list[Array] = []
    for vertex in polygon:
        if all(np.abs(vertex - other).max() > 1e-9 for other in kept):
            kept.append(vertex)
    return np.array(kept)


def convex_hull(points: Any, /) -> Array:
    """The corners of the convex hull of points in the plane, counter-clockwise, (v, 2).

    Andrew's monotone chain, O(n log n): unlike Qhull it needs no care where the points are one or lie on a line.

    >>> convex_hull([[0, 0], [1, 0], [0.5, 0.1], [0.5, 1]]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]]
    """
    unique = np.unique(np.asarray(points, dtype=np.float64), axis=0)
    if len(unique) < 3:
        return unique
    below, above = _chain(unique), _chain(unique[::-1])
    return np.array(below[:-1] + above[:-1])


def _chain(points: Array) -> list[Array]:
    chain: list[Array] = []
    for point in points:
        while len(chain) >= 2 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _turn(a: Array, b: Array, c: Array) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
