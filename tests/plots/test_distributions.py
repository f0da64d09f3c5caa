"""Distributions of scores, as histograms and by the classes that PIA keeps: densities, quantiles, the errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.plots import plot_pia, plot_uncertainty_histograms
from tests.plots.drawing import law, legend_of

scores = st.lists(st.floats(0, 5, width=32), min_size=1, max_size=30)


@law
@given(scores, scores, st.integers(1, 20))
def test_histograms_are_densities_on_shared_bins(inside, outside, bins):
    ax = plot_uncertainty_histograms(inside, {"OOD": outside}, bins=bins)
    first, second = (step.get_data() for step in ax.patches)
    np.testing.assert_array_equal(first.edges, second.edges)
    assert first.edges[0] <= min(inside + outside) <= max(inside + outside) <= first.edges[-1]
    for step, values in ((first, inside), (second, outside)):
        widths = np.diff(step.edges)
        assert (step.values * widths).sum() == pytest.approx(1)
        counts = [((values >= a) & (values < b)).sum() for a, b in zip(step.edges, step.edges[1:], strict=False)]
        counts[-1] += (np.asarray(values) == step.edges[-1]).sum()
        np.testing.assert_allclose(step.values * widths * len(values), counts, atol=1e-9)


def test_constant_scores_have_a_histogram():
    ax = plot_uncertainty_histograms(np.zeros(5), {"a": np.zeros(3), "b": [0.0]}, threshold=0.1)
    ax.figure.draw_without_rendering()
    assert legend_of(ax) == ["In distribution", "a", "b", "Threshold"]
    assert ax.lines[0].get_xdata() == [0.1, 0.1]


def test_scores_that_differ_by_rounding_only_count_as_constant():
    ax = plot_uncertainty_histograms([0.1], {"a": [np.nextafter(0.1, 1)]})
    first, second = (step.get_data() for step in ax.patches)
    np.testing.assert_array_equal(first.values, second.values)


def test_histograms_refuse_what_they_cannot_show():
    with pytest.raises(ValueError, match=r"1 of 2 id_scores .* index \(1,\): nan"):
        plot_uncertainty_histograms([0.0, np.nan], {"a": [1.0]})
    with pytest.raises(ValueError, match=r"'a' must have shape \(n,\) .*got shape \(0,\)"):
        plot_uncertainty_histograms([0.0], {"a": []})
    with pytest.raises(ValueError, match="names both"):
        plot_uncertainty_histograms([0.0], {"In distribution": [1.0]})
    with pytest.raises(ValueError, match="it is empty"):
        plot_uncertainty_histograms([0.0], {})
    with pytest.raises(ValueError, match="read the same"):
        plot_uncertainty_histograms([0.0], {1: [0.1], "1": [0.2]})
    with pytest.raises(TypeError, match="mapping name -> scores"):
        plot_uncertainty_histograms([0.0], [1.0])
    with pytest.raises(ValueError, match="bins must be at least 1"):
        plot_uncertainty_histograms([0.0], {"a": [1.0]}, bins=0)
    with pytest.raises(ValueError, match="threshold are not finite"):
        plot_uncertainty_histograms([0.0], {"a": [1.0]}, threshold=float("nan"))
    with pytest.raises(TypeError, match="real numbers; got dtype <U3"):
        plot_uncertainty_histograms(["0.1"], {"a": [1.0]})


def test_pia_marks_median_half_and_nine_tenths():
    values = np.arange(101.0)
    ax = plot_pia({10: {"ID": values}, 20: {"ID": values * 2, "OOD": values * 3}})
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [50, 100])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [150])
    thin, thick = (np.array(lines.get_segments())[:, :, 1] for lines in ax.collections[:2])
    np.testing.assert_allclose(thin, [[5, 95], [10, 190]])
    np.testing.assert_allclose(thick, [[25, 75], [50, 150]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["10", "20"]
    assert legend_of(ax) == ["ID", "OOD"]


def test_pia_places_every_data_set_beside_its_number_of_classes():
    ax = plot_pia({j: {name: [1.0] for name in "abcd"} for j in (5, 10)})
    for place, marks in enumerate(zip(*(line.get_xdata() for line in ax.lines), strict=True)):
        assert (np.diff(marks) > 0).all()
        assert np.abs(np.array(marks) - place).max() < 0.5
