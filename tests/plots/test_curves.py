"""ROC, precision-recall and rejection curves: drawn as given, with the area that the metric says."""

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import auc, average_precision_score, precision_recall_curve

from credalens.plots import plot_accuracy_rejection, plot_pr, plot_roc
from tests.plots.drawing import law, legend_of


@pytest.mark.parametrize("plot", [plot_roc, plot_pr, plot_accuracy_rejection])
def test_curves_are_drawn_as_given(plot):
    rng = np.random.default_rng(0)
    given_curves = {name: (np.sort(rng.random(30)), rng.random(30)) for name in ("one", "two", "three")}
    ax = plot(given_curves)
    lines = [line for line in ax.lines if len(line.get_xdata()) == 30]
    assert legend_of(ax) == list(given_curves)
    for line, (x, y) in zip(lines, given_curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.c_[x, y])


@law
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=30), st.booleans())
def test_area_under_precision_recall_steps_is_average_precision(pairs, backwards):
    labels, values = np.array([True, *[label for label, _ in pairs]]), np.array([3, *[v for _, v in pairs]])
    precision, recall, _ = precision_recall_curve(labels, values)
    points = (recall[::-1], precision[::-1]) if backwards else (recall, precision)
    (line,) = plot_pr({"a": points}).lines
    path = line.get_path()
    stepped = mpl.cbook.STEP_LOOKUP_MAP[line.get_drawstyle()](*path.vertices.T)
    assert auc(*stepped) == pytest.approx(average_precision_score(labels, values))


@pytest.mark.parametrize("plot", [plot_roc, plot_pr, plot_accuracy_rejection])
def test_curves_refuse_what_they_cannot_show(plot):
    with pytest.raises(
        ValueError, match=r"curve 'a': .* not from 0 to 1, the first at index \(1,\): 95\. Divide percentages"
    ):
        plot({"a": ([0, 1], [0, 95])})
    with pytest.raises(ValueError, match="must have one length, got 2 and 3"):
        plot({"a": ([0, 1], [0, 1, 1])})
    with pytest.raises(ValueError, match="must not go back and forth"):
        plot({"a": ([0, 1, 0.5], [0, 1, 1])})
    with pytest.raises(ValueError, match="must be a pair"):
        plot({"a": 3})
    with pytest.raises(ValueError, match="must be a pair"):
        plot({"a": ([0, 1], [0, 1], [0, 1])})
    with pytest.raises(ValueError, match="it is empty"):
        plot({})


def test_prevalence_is_a_share():
    (chance, _) = plot_pr({"a": ([0, 1], [1, 1])}, prevalence=0.3).lines
    assert list(chance.get_ydata()) == [0.3, 0.3]
    with pytest.raises(ValueError, match="from 0 to 1, got 30"):
        plot_pr({"a": ([0, 1], [1, 1])}, prevalence=30)
