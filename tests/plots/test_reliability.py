"""Reliability diagrams: filled bins, their shares and the error; bins of few inputs stand alone."""

import numpy as np
import pytest

from credalens.plots import plot_reliability, reliability
from tests.plots.drawing import legend_of


def test_reliability_shows_filled_bins_their_shares_and_the_error():
    nan = np.nan
    ax = plot_reliability([nan, 0.3, 0.6, 0.9], [nan, 0.4, 0.5, 0.9], [0, 10, 30, 60], name="Averaged")
    _, line = ax.lines
    np.testing.assert_array_equal(line.get_xydata(), [[0.3, 0.4], [0.6, 0.5], [0.9, 0.9]])
    (margin,) = ax.child_axes
    np.testing.assert_allclose(margin.patches[0].get_data().values, [0, 0.1, 0.3, 0.6])
    np.testing.assert_allclose(margin.patches[0].get_data().edges, [0, 0.25, 0.5, 0.75, 1])
    assert legend_of(ax) == ["Averaged, ECE 0.040"]  # .1 * .1 + .3 * .1 + .6 * 0


def test_a_second_prediction_lies_over_the_first():
    ax = plot_reliability([0.3, 0.9], [0.4, 0.7], [20, 80], name="Averaged")
    plot_reliability([0.2, 0.8], [0.2, 0.8], [30, 70], name="Intersection", order=1, ax=ax)
    assert legend_of(ax) == ["Averaged, ECE 0.180", "Intersection, ECE 0.000"]
    assert len(ax.child_axes) == 1
    assert ax.lines[1].get_marker() != ax.lines[2].get_marker()


def test_reliability_does_not_join_bins_of_few_inputs():
    ax = plot_reliability([0.1, 0.3, 0.6, 0.9], [1, 0.4, 0.5, 0.9], [4, 5, 30, 60])
    drawn = {line.get_gid(): line.get_xdata().tolist() for line in ax.lines if line.get_gid()}
    assert drawn == {reliability.LINE: [0.3, 0.6, 0.9], reliability.FEW: [0.1]}
    few = next(line for line in ax.lines if line.get_gid() == reliability.FEW)
    assert few.get_linestyle() == "None"
    assert few.get_markerfacecolor() == "#FFFFFF"


def test_reliability_takes_edges_of_any_width():
    ax = plot_reliability([0.05, 0.5], [0.1, 0.5], [1, 1], edges=[0, 0.1, 1])
    np.testing.assert_allclose(ax.child_axes[0].patches[0].get_data().edges, [0, 0.1, 1])


def test_reliability_refuses_what_it_cannot_show():
    with pytest.raises(ValueError, match=r"confidence 0\.4 lies outside its bin, 0\.5 to 1"):
        plot_reliability([0.3, 0.4], [0.5, 0.5], [1, 1])
    with pytest.raises(ValueError, match="one entry for each of the 2 bins"):
        plot_reliability([0.3], [0.5, 0.5], [1, 1])
    with pytest.raises(ValueError, match="not all 0"):
        plot_reliability([0.3, 0.9], [0.5, 0.5], [0, 0])
    with pytest.raises(ValueError, match="accuracy of the bins with inputs are not finite"):
        plot_reliability([0.3, 0.9], [np.nan, 0.5], [1, 1])
    with pytest.raises(ValueError, match="accuracy of the bins with inputs are not from 0 to 1"):
        plot_reliability([0.3, 0.9], [50, 60], [1, 1])
    with pytest.raises(ValueError, match="edges must be 3 increasing numbers"):
        plot_reliability([0.3, 0.9], [0.5, 0.5], [1, 1], edges=[0, 1])
