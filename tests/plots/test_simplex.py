"""The triangle: what is drawn against what was given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.core.intervals import intersection_probability
from credalens.evaluation.single_inputs import CORNERS, to_plane
from credalens.plots import merge_to_three, plot_simplex, plot_simplex_panel
from tests.plots.drawing import legend_of, members

WEATHER = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
law = settings(derandomize=True, deadline=None, max_examples=25)
SKY = ("sun", "rain", "snow")


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
