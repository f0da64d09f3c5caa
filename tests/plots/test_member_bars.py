"""Bars of the members' probabilities: what is drawn against what was given, and the rest of many classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.core.intervals import intersection_probability, probability_intervals
from credalens.evaluation.single_inputs import MOST_BARS
from credalens.plots import plot_member_bars
from tests.plots.drawing import ensemble, law, legend_of


def drawn_members(ax, count):
    """The members' probabilities as drawn, (members, rows): bars when they are few, dots when they are many."""
    rows = len(ax.get_yticks())
    if count > MOST_BARS:
        dots = np.asarray(ax.collections[0].get_offsets())
        return dots[:, 0].reshape(count, rows)
    return np.array([bar.get_width() for bar in ax.containers[0]]).reshape(count, rows)


def drawn_bounds(ax):
    boxes = [bar.get_bbox() for bar in ax.containers[-1]]
    return np.array([[box.x0 for box in boxes], [box.x1 for box in boxes]])


def drawn_points(ax):
    """Averaged and intersection probability as drawn; each is followed by its empty legend mark."""
    full = [dots for dots in ax.collections if len(dots.get_offsets())]
    return [np.asarray(dots.get_offsets())[:, 0] for dots in full[-2:]]


@pytest.mark.parametrize("count", [1, 2, 8, 9, 40])
def test_bars_show_members_bounds_and_both_predictions(count):
    p = ensemble(count, 4, seed=count)
    ax = plot_member_bars(p, class_names=list("abcd"))
    np.testing.assert_allclose(drawn_members(ax, count), p, atol=1e-12)
    np.testing.assert_allclose(drawn_bounds(ax), [p.min(axis=0), p.max(axis=0)], atol=1e-12)
    averaged, intersection = drawn_points(ax)
    np.testing.assert_allclose(averaged, p.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(intersection, intersection_probability(p.min(axis=0), p.max(axis=0)), atol=1e-12)
    assert legend_of(ax) == ["Members", "Interval", "Averaged", "Intersection"]


def test_bars_of_members_stay_in_their_row():
    ax = plot_member_bars(np.eye(3), class_names=list("abc"))
    for k, bar in enumerate(ax.containers[0]):
        assert k % 3 - 0.5 < bar.get_y() < bar.get_y() + bar.get_height() < k % 3 + 0.5


def test_the_filled_marker_is_the_predicted_class():
    ax = plot_member_bars([[0.6, 0.4, 0.0], [0.1, 0.5, 0.4]], class_names=list("abc"), true_class=2)
    # Averaged (.35, .45, .2) predicts b; lower (.1, .4, 0), width (.5, .1, .4), alpha .5: (.35, .45, .2) as well.
    for dots in [dots for dots in ax.collections if len(dots.get_offsets())]:
        white = (dots.get_facecolor()[:, :3] == 1).all(axis=1)
        assert white.tolist() == [True, False, True]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c (true)"]


@law
@given(st.integers(0, 1000))
def test_with_many_classes_the_rest_is_one_row_that_completes_the_others(seed):
    p = ensemble(6, 30, seed)
    ax = plot_member_bars(p, class_names=[f"c{k}" for k in range(30)], true_class=7, max_classes=6)
    names = [text.get_text() for text in ax.get_yticklabels()]
    shown = [int(name.removeprefix("c").removesuffix(" (true)")) for name in names[:-1]]
    assert names[-1] == "25 others"
    assert {7, int(p.mean(axis=0).argmax())} <= set(shown)
    bars, (lower, upper), (averaged, intersection) = drawn_members(ax, 6), drawn_bounds(ax), drawn_points(ax)
    np.testing.assert_allclose(bars.sum(axis=1), 1)
    np.testing.assert_allclose(bars[:, :-1], p[:, shown], atol=1e-12)
    for point in (averaged, intersection, *bars):
        assert point.sum() == pytest.approx(1)
        assert (lower - 1e-9 <= point).all()
        assert (point <= upper + 1e-9).all()
    assert (np.diff(intersection[:-1]) <= 0).all()


@law
@given(st.integers(0, 1000), st.integers(2, 4), st.sampled_from([0.1, 1.0, 10.0]))
def test_bounds_of_the_rest_are_those_of_the_event_in_the_credal_set(seed, count, spread):
    p = np.random.default_rng(seed).dirichlet(spread * np.array([5, 3, 2, 1, 1, 1]), size=count)
    ax = plot_member_bars(p, class_names=list("abcdef"), max_classes=4)
    names = [text.get_text() for text in ax.get_yticklabels()]
    rest = [k for k, name in enumerate("abcdef") if name not in names]
    events = probability_intervals(p).vertices()[:, rest].sum(axis=1)  # linear: its extremes are at vertices
    np.testing.assert_allclose(drawn_bounds(ax)[:, -1], [events.min(), events.max()], atol=1e-9)


def test_bars_refuse_what_they_cannot_show():
    p = ensemble(2, 3)
    with pytest.raises(ValueError, match="class_names must be a sequence of 3 names, got 2"):
        plot_member_bars(p, class_names=("a", "b"))
    with pytest.raises(ValueError, match="true_class must be an index from 0 to 2, got 3"):
        plot_member_bars(p, class_names=["a", "b", "c"], true_class=3)
    with pytest.raises(ValueError, match="max_classes must be at least 4"):
        plot_member_bars(p, class_names=["a", "b", "c"], max_classes=3)
    with pytest.raises(ValueError, match="not probability distributions"):
        plot_member_bars(p * 3, class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="shows one input"):
        plot_member_bars(np.full((2, 5, 3), 1 / 3), class_names=["a", "b", "c"])
