"""The triangle: its geometry against slow truths, and what is drawn against what was given."""

import doctest
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from credalens.core.intervals import intersection_probability
from credalens.evaluation import triangle
from credalens.evaluation.triangle import CORNERS, convex_hull, credal_polygon, to_plane
from credalens.plots import merge_to_three, plot_simplex, plot_simplex_panel
from credalens.plots.simplex import figures
from tests.plots.drawing import legend_of

WEATHER = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
SKY = ("sun", "rain", "snow")
law = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def members(draw, classes=3):
    """Small ensembles with zeros, one-hots and ties, down to one member."""
    weights = st.lists(st.integers(0, 6), min_size=classes, max_size=classes).filter(any)
    counts = np.array(draw(st.lists(weights, min_size=1, max_size=8)), dtype=float)
    return counts / counts.sum(axis=1, keepdims=True)


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


@law
@given(members(classes=5), st.permutations(range(5)))
def test_merged_members_sum_to_one_and_keep_their_classes(p, order):
    i, j = order[:2]
    merged = merge_to_three(p, classes=(i, j))
    np.testing.assert_allclose(merged.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(merged[:, :2], p[:, [i, j]], atol=1e-12)


@pytest.mark.parametrize("classes", [(0, 0), (0, 4), (-1, 0), (0,), (0, 1, 2)])
def test_merging_refuses_classes_that_are_not_two(classes):
    with pytest.raises(ValueError, match="two different indices from 0 to 3"):
        merge_to_three(np.full((2, 4), 0.25), classes=classes)


def test_merging_two_classes_leaves_no_rest():
    with pytest.raises(ValueError, match="at least 3 classes"):
        merge_to_three([[0.5, 0.5]], classes=(0, 1))


@law
@given(members())
def test_what_is_drawn_is_what_was_given(p):
    ax = plot_simplex(p, labels=SKY)
    lower, upper = p.min(axis=0), p.max(axis=0)
    dots, averaged, intersection = (np.asarray(dots.get_offsets()) for dots in ax.collections)
    np.testing.assert_allclose(dots, to_plane(p), atol=1e-12)
    np.testing.assert_allclose(averaged, [to_plane(p.mean(axis=0))], atol=1e-12)
    np.testing.assert_allclose(intersection, [to_plane(intersection_probability(lower, upper))], atol=1e-12)


@law
@given(members())
def test_interval_lines_run_where_a_class_is_at_a_bound(p):
    ax = plot_simplex(p, labels=SKY)
    to_probability = np.linalg.inv(np.c_[CORNERS, np.ones(3)])
    for k in range(3):
        lines = [line.get_xydata() for line in ax.lines if line.get_gid() == f"interval-{k}"]
        ends = [np.c_[line, np.ones(2)] @ to_probability for line in lines]
        assert len(ends) == 2
        np.testing.assert_allclose(ends[0][:, k], p[:, k].min(), atol=1e-12)
        np.testing.assert_allclose(ends[1][:, k], p[:, k].max(), atol=1e-12)


def test_corners_name_the_classes_and_their_intervals():
    texts = [text.get_text() for text in plot_simplex(WEATHER, labels=("a_$b$", "rain", "snow")).texts]
    assert texts == ["a_$b$\n0.10 to 0.70", "rain\n0.10 to 0.60", "snow\n0.20 to 0.70"]


def test_layers_can_be_left_out():
    everything = plot_simplex(WEATHER, labels=SKY)
    assert legend_of(everything) == [
        "Members",
        "Averaged",
        "Intersection",
        "Credal set",
        "Convex hull",
        "Probability intervals",
    ]
    bare = plot_simplex(WEATHER, labels=SKY, intervals=False, polygon=False, hull=False, points=False)
    assert legend_of(bare) == ["Members"]
    assert plot_simplex(WEATHER, labels=SKY, legend=False).get_legend() is None


def test_groups_have_markers_of_their_own():
    ax = plot_simplex(WEATHER, labels=SKY, groups=["old", "new", "old"], points=False)
    assert legend_of(ax)[:2] == ["old", "new"]
    old, new = ax.collections
    np.testing.assert_allclose(old.get_offsets(), to_plane(WEATHER[[0, 2]]))
    np.testing.assert_allclose(new.get_offsets(), to_plane(WEATHER[[1]]))
    assert not np.array_equal(old.get_paths()[0].vertices, new.get_paths()[0].vertices)


def test_a_group_may_have_the_name_of_another_entry():
    ax = plot_simplex(WEATHER, labels=SKY, groups=["Averaged"] * 3)
    assert legend_of(ax).count("Averaged") == 2


@pytest.mark.parametrize("p", [[[0.2, 0.3, 0.5]], [[1, 0, 0], [0, 1, 0]], np.eye(3), np.eye(3)[[0, 0]]])
def test_degenerate_ensembles_are_drawn(p):
    ax = plot_simplex(p, labels=SKY, zoom=True)
    ax.figure.draw_without_rendering()
    assert len(ax.collections[0].get_offsets()) == len(p)


def test_zoom_magnifies_small_sets_only_and_keeps_angles():
    small = plot_simplex([[0.96, 0.02, 0.02], [0.94, 0.05, 0.01]], labels=SKY, zoom=True)
    (inset,) = small.child_axes
    small.figure.draw_without_rendering()
    box = inset.get_window_extent()
    x, y = np.ptp(inset.get_xlim()), np.ptp(inset.get_ylim())
    assert box.width / x == pytest.approx(box.height / y)
    assert x < 0.1
    assert plot_simplex(WEATHER, labels=SKY, zoom=True).child_axes == []


def test_panel_draws_every_sample_under_its_title():
    samples = {"first": WEATHER, "second": np.eye(3), "third": WEATHER[:1]}
    axes = plot_simplex_panel(samples, labels=SKY, columns=2, hull=False)
    assert [ax.get_title(loc="left") for ax in axes] == list(samples)
    for ax, p in zip(axes, samples.values(), strict=True):
        np.testing.assert_allclose(ax.collections[0].get_offsets(), to_plane(p))
    (legend,) = axes[0].figure.legends
    assert "Convex hull" not in [text.get_text() for text in legend.get_texts()]
    assert axes[2].get_subplotspec().get_gridspec().get_geometry() == (2, 2)


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="merge_to_three"):
        plot_simplex(np.full((2, 4), 0.25), labels=SKY)
    with pytest.raises(ValueError, match="sequence of 3 names, got 2"):
        plot_simplex(WEATHER, labels=("a", "b"))
    with pytest.raises(ValueError, match="single string 'abc'"):
        plot_simplex(WEATHER, labels="abc")
    with pytest.raises(ValueError, match="groups must be a sequence of 3"):
        plot_simplex(WEATHER, labels=SKY, groups=["one"])
    with pytest.raises(ValueError, match=r"sums to 1\.8"):
        plot_simplex(WEATHER + 0.8 / 3, labels=SKY)
    with pytest.raises(ValueError, match=r"members\[:, 0\]"):
        plot_simplex(WEATHER[:, None], labels=SKY)
    with pytest.raises(ValueError, match="columns must be at least 1"):
        plot_simplex_panel({"a": WEATHER}, labels=SKY, columns=0)
    with pytest.raises(TypeError, match="unknown option 'hulls'"):
        plot_simplex_panel({"a": WEATHER}, labels=SKY, hulls=False)
    with pytest.raises(TypeError, match="mapping"):
        plot_simplex_panel([WEATHER], labels=SKY)


@pytest.mark.parametrize("module", [figures, triangle])
def test_examples_run(module):
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)
