"""Trends over severities: means, spreads, axes, and the errors."""

import numpy as np
import pytest

from credalens.plots import plot_against_severity
from credalens.theme import LIGHT
from tests.plots.drawing import legend_of


def _curves(ax):
    """The lines without the caps of error bars, whose colour differs between releases of matplotlib."""
    return [line for line in ax.lines if line.get_linestyle() != "None"]


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_trends_show_mean_and_spread(count):
    rng = np.random.default_rng(count)
    series = {f"s{k}": (rng.random(5), rng.random(5) / 10) for k in range(count)}
    ax = plot_against_severity(series, "ECE")
    assert legend_of(ax) == list(series)
    for line, (mean, _) in zip(_curves(ax), series.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.c_[1:6, mean])
    for shape, (mean, std) in zip(ax.collections, series.values(), strict=True):
        corners = np.concatenate([path.vertices for path in shape.get_paths()])
        for x, low, high in zip(range(1, 6), mean - std, mean + std, strict=True):
            at = corners[corners[:, 0] == x, 1]
            assert (at.min(), at.max()) == pytest.approx((low, high))


def test_severities_may_be_given_and_the_metric_names_the_axis():
    ax = plot_against_severity({"a": ([0.1, 0.2], [0, 0])}, "NLL", severities=[0, 3])
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0, 3])
    assert ax.get_ylabel() == "NLL"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "3"]


def test_what_a_line_stands_for_has_its_colour_in_every_figure():
    names = ["Averaged probability", "Intersection probability", "Credal", "Classical", "EDD"]
    ax = plot_against_severity({name: ([0.1], [0]) for name in names}, "ECE")
    drawn = [line.get_color() for line in _curves(ax)]
    assert drawn[:4] == [LIGHT.averaged, LIGHT.intersection, LIGHT.credal, LIGHT.averaged]
    assert LIGHT.colors_of(["Classical", "Credal", "EDD"])[2] not in (LIGHT.averaged, LIGHT.credal)
    assert LIGHT.colors_of(list("abcdef")) == list(LIGHT.palette)


def test_trends_refuse_what_they_cannot_show():
    one = {"a": ([0.8, 0.9], [0, 0])}
    with pytest.raises(ValueError, match="severities must increase"):
        plot_against_severity(one, "ECE", severities=[5, 2])
    with pytest.raises(ValueError, match=r"series 'a' .* index \(1,\): -1"):
        plot_against_severity({"a": ([0.8, 0.9], [0, -1])}, "ECE")
    with pytest.raises(ValueError, match="series 'b' has 1 value; the number of severities is 2"):
        plot_against_severity(one | {"b": ([0.1], [0])}, "ECE")
