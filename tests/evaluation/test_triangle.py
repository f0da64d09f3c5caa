"""The geometry of three classes against slow truths."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.spatial import ConvexHull

from credalens.core.intervals import intersection_probability
from credalens.evaluation.single_inputs import CORNERS, convex_hull, credal_polygon, to_plane
from tests.plots.drawing import members

WEATHER = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
law = settings(derandomize=True, deadline=None, max_examples=60)


def corners_by_enumeration(lower, upper):
    """Two classes at a bound, the third takes what is left, if it may."""
    found = []
    for free in range(3):
        others = [k for k in range(3) if k != free]
        for bounds in product(*[(lower[k], upper[k]) for k in others]):
            p = np.zeros(3)
            p[others] = bounds
            p[free] = 1 - p.sum()
            if lower[free] - 1e-12 <= p[free] <= upper[free] + 1e-12:
                found.append(p)
    return np.array(found)


def turns(polygon):
    """Twice the area of the triangle at every vertex, positive where the polygon turns left."""
    ahead, back = np.roll(polygon, -1, axis=0) - polygon, np.roll(polygon, 1, axis=0) - polygon
    return ahead[:, 0] * back[:, 1] - ahead[:, 1] * back[:, 0]


def reach(points, directions):
    """The support function: how far the points go in each direction."""
    return (points @ directions.T).max(axis=0)


@law
@given(members())
def test_polygon_vertices_lie_in_the_credal_set(p):
    lower, upper = p.min(axis=0), p.max(axis=0)
    polygon = credal_polygon(lower, upper)
    assert 1 <= len(polygon) <= 6
    np.testing.assert_allclose(polygon.sum(axis=1), 1, atol=1e-12)
    assert (polygon >= lower - 1e-12).all()
    assert (polygon <= upper + 1e-12).all()


@law
@given(members())
def test_polygon_is_the_one_that_enumeration_finds(p):
    lower, upper = p.min(axis=0), p.max(axis=0)
    directions = np.random.default_rng(0).normal(size=(40, 3))
    ours = reach(credal_polygon(lower, upper), directions)
    np.testing.assert_allclose(ours, reach(corners_by_enumeration(lower, upper), directions), atol=1e-9)


@law
@given(members())
def test_polygon_is_convex_and_holds_members_hull_and_both_predictions(p):
    lower, upper = p.min(axis=0), p.max(axis=0)
    polygon = to_plane(credal_polygon(lower, upper))
    inner = np.vstack([p, p.mean(axis=0), intersection_probability(lower, upper)])
    directions = np.random.default_rng(1).normal(size=(40, 2))
    assert (reach(polygon, directions) >= reach(to_plane(inner), directions) - 1e-9).all()
    assert len(polygon) < 3 or len(set(np.sign(np.round(turns(polygon), 12))) - {0.0}) <= 1


def test_polygon_of_the_weather_predictors_is_the_hand_worked_one():
    # lower (.1, .1, .2), upper (.7, .6, .7): snow = .2 meets sun = .7 at (.7, .1, .2) and rain = .6 at (.2, .6, .2);
    # rain = .6 meets sun = .1 at (.1, .6, .3); snow = .7 meets sun = .1 at (.1, .2, .7) and rain = .1 at (.2, .1, .7).
    polygon = credal_polygon(WEATHER.min(axis=0), WEATHER.max(axis=0))
    expected = [[0.1, 0.2, 0.7], [0.1, 0.6, 0.3], [0.2, 0.1, 0.7], [0.2, 0.6, 0.2], [0.7, 0.1, 0.2]]
    np.testing.assert_allclose(sorted(polygon.round(9).tolist()), expected)


def test_polygon_can_have_six_vertices_and_is_the_triangle_for_no_knowledge():
    assert len(credal_polygon([0.2, 0.2, 0.2], [0.5, 0.5, 0.5])) == 6
    np.testing.assert_array_equal(sorted(credal_polygon([0, 0, 0], [1, 1, 1]).tolist()), np.eye(3)[::-1])


def test_polygon_of_bounds_that_no_member_reaches_is_still_the_credal_set():
    # sum(lower) = .9 leaves .1 to give: the upper bound 1 of class 0 is out of reach.
    polygon = credal_polygon([0.5, 0.2, 0.2], [1.0, 0.3, 0.3])
    np.testing.assert_allclose(polygon.max(axis=0), [0.6, 0.3, 0.3])


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        ([0.6, 0.3, 0.3], [0.7, 0.4, 0.4], "empty"),
        ([0.5, 0.2, 0.2], [0.4, 0.5, 0.5], "lower <= upper"),
        ([0.1, 0.1], [0.9, 0.9], "3 classes"),
        ([[0.1, 0.1, 0.1]], [[0.9, 0.9, 0.9]], "one input"),
    ],
)
def test_polygon_refuses_what_is_no_triangle(lower, upper, words):
    with pytest.raises(ValueError, match=words):
        credal_polygon(lower, upper)


@law
@given(members())
def test_hull_reaches_as_far_as_the_members_and_has_its_corners_among_them(p):
    points = to_plane(p)
    hull = convex_hull(points)
    directions = np.random.default_rng(2).normal(size=(40, 2))
    np.testing.assert_allclose(reach(hull, directions), reach(points, directions), atol=1e-12)
    assert {tuple(corner) for corner in hull} <= {tuple(point) for point in points}


def test_hull_is_the_one_qhull_finds():
    points = np.random.default_rng(3).dirichlet([1, 1, 1], size=40) @ CORNERS
    theirs = points[ConvexHull(points).vertices]
    assert sorted(convex_hull(points).tolist()) == sorted(theirs.tolist())
    assert (turns(convex_hull(points)) > 0).all()


def test_hull_of_points_on_a_line_is_a_segment():
    np.testing.assert_array_equal(convex_hull([[0, 0], [2, 2], [1, 1]]), [[0, 0], [2, 2]])
    np.testing.assert_array_equal(convex_hull([[1, 2], [1, 2]]), [[1, 2]])
