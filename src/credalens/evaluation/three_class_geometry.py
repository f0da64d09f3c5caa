"""The geometry of three classes: the triangle, the credal polygon, the convex hull of the members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.intervals import ProbabilityIntervals, intersection_probability

Array = NDArray[np.float64]

CORNERS: Final[Array] = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
"""Where certainty in class 0, 1 and 2 lies in the plane: an equilateral triangle of side one."""


def to_plane(probabilities: Any, /) -> Array:
    """Distributions over three classes, (..., 3), as points of the plane, (..., 2).

    >>> to_plane([0.5, 0.5, 0.0])
    array([0.5, 0. ])
    """
    points: Array = np.asarray(probabilities, dtype=np.float64) @ CORNERS
    return points


def level_ends(k: int, value: float, /) -> Array:
    """The ends, (2, 2), of the segment of the triangle on which class k has this probability."""
    ends = np.zeros((2, 3))
    ends[:, k] = value
    ends[0, (k + 1) % 3] = ends[1, (k + 2) % 3] = 1 - value
    return to_plane(ends)


@dataclass(frozen=True, slots=True)
class Triangle:
    """The member distributions of one input over three classes, (members, 3), and their bounds."""

    members: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, members: Array, /) -> Triangle:
        """Take the bounds of members that are distributions."""
        return cls(members, members.min(axis=0), members.max(axis=0))

    @property
    def averaged(self) -> Array:
        """The mean of the members."""
        return self.members.mean(axis=0)

    @property
    def intersection(self) -> Array:
        """The intersection probability of the bounds."""
        return np.asarray(intersection_probability(self.lower, self.upper))

    @property
    def extent(self) -> float:
        """The widest interval: the side of the smallest triangle of this shape that holds the credal set."""
        return float((self.upper - self.lower).max())

    def polygon(self) -> Array:
        """The corners of the credal set in the plane, (v, 2)."""
        return to_plane(credal_polygon(self.lower, self.upper))

    def hull(self) -> Array:
        """The corners of the convex hull of the members in the plane, (v, 2)."""
        return convex_hull(to_plane(self.members))


def credal_polygon(lower: Any, upper: Any, /) -> Array:
    r"""The vertices of :math:`\{p : l \le p \le u, \sum_k p_k = 1\}` for three classes, in order around it, (v, 3).

    There are at most six; one where the bounds meet in a point, two where they leave a segment.

    >>> credal_polygon([0.2, 0.3, 0.5], [0.2, 0.3, 0.5])
    array([[0.2, 0.3, 0.5]])
    """
    if np.shape(lower) != (3,):
        raise ValueError(f"a triangle needs the bounds of one input over 3 classes, got shape {np.shape(lower)}.")
    vertices: Array = ProbabilityIntervals(np.asarray(lower), np.asarray(upper)).vertices()
    x, y = to_plane(vertices - vertices.mean(axis=0)).T
    return vertices[np.argsort(np.arctan2(y, x))]


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
