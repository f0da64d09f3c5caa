"""The other figures: what is drawn against what was given, degenerate input, the look, the errors."""

import doctest
import logging
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from sklearn.metrics import auc, average_precision_score, precision_recall_curve

from credalens.core.intervals import intersection_probability, probability_intervals
from credalens.report import (
    curves,
    curves_reliability,
    curves_trends,
    distributions,
    distributions_members,
    figures,
    style,
    style_axes,
)
from credalens.report.figures import (
    new_figure,
    plot_accuracy_rejection,
    plot_against_severity,
    plot_member_bars,
    plot_members_needed,
    plot_pia,
    plot_pr,
    plot_reliability,
    plot_roc,
    plot_simplex,
    plot_simplex_panel,
    plot_uncertainty_histograms,
    themed,
)

law = settings(derandomize=True, deadline=None, max_examples=40)
CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
scores = st.lists(st.floats(0, 5, width=32), min_size=1, max_size=30)


def ensemble(count, classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.4), size=count)


def every_figure(**options):
    """One of each, on made-up data of realistic size."""
    rng = np.random.default_rng(0)
    line = np.linspace(0, 1, 20)
    three = ensemble(5, 3)
    return {
        "simplex": plot_simplex(three, labels=("airplane", "automobile", "others"), **options),
        "bars": plot_member_bars(ensemble(5, 10), class_names=CIFAR, **options),
        "dots": plot_member_bars(ensemble(30, 100), class_names=[f"a long class {k}" for k in range(100)], **options),
        "histograms": plot_uncertainty_histograms(
            rng.gamma(1, 0.3, 500), {"SVHN": rng.gamma(3, 0.4, 300), "Tiny-ImageNet": rng.gamma(2, 0.5, 200)}, **options
        ),
        "pia": plot_pia({10: {"ID": rng.random(50), "SVHN": rng.random(50)}, 20: {"ID": rng.random(50)}}, **options),
        "roc": plot_roc({"classical": (line, line**0.5), "credal": (line, line**0.3)}, **options),
        "pr": plot_pr({"classical": (line, 1 - line / 2)}, prevalence=0.5, **options),
        "rejection": plot_accuracy_rejection({"EU": (line, 0.9 + line / 10)}, **options),
        "reliability": plot_reliability([0.25, 0.75], [0.2, 0.8], [30, 70], **options),
        "severity": plot_against_severity(dict.fromkeys("abcd", (line[:5], line[:5] / 9)), "ECE", **options),
        "members": plot_members_needed([1, 5, 25], {"AUROC": ([0.8, 0.88, 0.9], [0.02, 0.01, 0])}, **options),
    }


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- the skeleton all share ---


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_figure_fits_its_page_in_its_theme(theme, caplog):
    caplog.set_level(logging.WARNING)
    for name, ax in every_figure(theme=theme, title="A title of usual length").items():
        figure = ax.figure
        assert mpl.colors.to_hex(figure.get_facecolor()) == style.THEMES[theme].background.lower()
        figure.draw_without_rendering()
        drawn, page = figure.get_tightbbox(), figure.bbox_inches
        assert page.x0 - 0.02 <= drawn.x0, name
        assert page.y0 - 0.02 <= drawn.y0, name
        assert drawn.x1 <= page.x1 + 0.02, name
        assert drawn.y1 <= page.y1 + 0.02, name
    assert caplog.records == []


def test_figures_draw_on_the_axes_they_are_given():
    for plot, args, options in [
        (plot_simplex, (ensemble(2, 3),), {"labels": ("a", "b", "c")}),
        (plot_member_bars, (ensemble(2, 3),), {"class_names": ("a", "b", "c")}),
        (plot_uncertainty_histograms, ([0, 1], {"a": [1, 2]}), {}),
        (plot_pia, ({2: {"a": [1]}},), {}),
        (plot_roc, ({"a": ([0, 1], [0, 1])},), {}),
        (plot_pr, ({"a": ([0, 1], [1, 1])},), {}),
        (plot_accuracy_rejection, ({"a": ([0], [1])},), {}),
        (plot_reliability, ([0.5], [0.5], [1]), {}),
        (plot_against_severity, ({"a": ([1], [0])}, "ECE"), {}),
        (plot_members_needed, ([1], {"a": ([1], [0])}), {}),
    ]:
        given_axes = new_figure().add_subplot()
        assert plot(*args, ax=given_axes, **options) is given_axes
        assert isinstance(plot(*args, **options), Axes)
        with pytest.raises(TypeError, match="ax must be a matplotlib Axes or None, got str"):
            plot(*args, ax="axes", **options)


def test_settings_are_as_before_even_after_an_error():
    before = dict(mpl.rcParams)
    every_figure(theme="dark")
    plot_simplex_panel({"a": ensemble(2, 3)}, labels=("a", "b", "c"), theme="dark")
    with pytest.raises(RuntimeError), themed("dark"):
        raise RuntimeError
    assert dict(mpl.rcParams) == before


def test_settings_of_the_user_do_not_change_the_figure():
    plain = style_axes.new_figure().get_facecolor()
    with mpl.rc_context({"figure.facecolor": "pink", "axes.facecolor": "pink"}):
        assert style_axes.new_figure().get_facecolor() == plain
        assert mpl.colors.to_hex(every_figure()["roc"].get_facecolor()) == "#ffffff"


def test_no_window_and_no_pyplot():
    code = (
        "import sys, credalens.report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from credalens.report.figures import *\n"
        "render_figure(plot_simplex([[1, 0, 0]], labels=tuple('abc')).figure, 'png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_are_shown_as_written():
    ax = plot_roc({r"$\broken": ([0, 1], [0, 1]), "_hidden": ([0, 1], [0, 1])})
    assert [name.strip("\u200b") for name in legend_of(ax)] == [r"$\broken", "_hidden"]
    ax.figure.draw_without_rendering()
    plot_member_bars([[0.5, 0.5]], class_names=("$x$ and $", r"$\x$")).figure.draw_without_rendering()


# --- the palette ---

PROTAN = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
DEUTAN = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
TRITAN = [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
"""How colours appear without one kind of cone, in linear RGB: Machado, Oliveira and Fernandes (2009)."""


def linear(color):
    rgb = np.array(mpl.colors.to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(first, second):
    """The ratio of the Web Content Accessibility Guidelines."""
    dark, bright = sorted(linear(color) @ [0.2126, 0.7152, 0.0722] for color in (first, second))
    return (bright + 0.05) / (dark + 0.05)


def lab(rgb):
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", style.THEMES.values(), ids=lambda theme: theme.name)
def test_colours_stand_out_from_the_background(theme):
    assert min(contrast(color, theme.background) for color in theme.palette) >= 3
    assert contrast(theme.text, theme.background) >= 7
    assert contrast(theme.muted, theme.background) >= 4.5


@pytest.mark.parametrize("theme", style.THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("vision", [np.eye(3), PROTAN, DEUTAN, TRITAN], ids=["all", "protan", "deutan", "tritan"])
def test_colours_differ_for_every_eye(theme, vision):
    seen = np.array([lab(np.array(vision) @ linear(color)) for color in theme.palette])
    distance = np.linalg.norm(seen[:, None] - seen, axis=-1) + 100 * np.eye(len(seen))
    assert distance.min() >= 18


def test_series_differ_without_colour():
    assert len({(style.dash(k), style.marker(k)) for k in range(35)}) == 35
    ax = plot_against_severity({str(k): ([k], [0]) for k in range(7)}, "ECE")
    assert len({line.get_marker() for line in ax.lines if line.get_marker() in style.MARKERS}) == 7


def test_an_unknown_theme_is_named():
    with pytest.raises(ValueError, match=r"\['dark', 'light'\] or a Theme, got 'sepia'"):
        plot_roc({"a": ([0, 1], [0, 1])}, theme="sepia")


# --- member bars ---


def drawn_members(ax, count):
    """The members' probabilities as drawn, (members, rows): bars when they are few, dots when they are many."""
    rows = len(ax.get_yticks())
    if count > distributions_members.MOST_BARS:
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


# --- distributions of scores ---


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
    with pytest.raises(
        ValueError, match=r"id_scores must be finite; 1 of 2 entries are not, the first is nan at index 1"
    ):
        plot_uncertainty_histograms([0.0, np.nan], {"a": [1.0]})
    with pytest.raises(ValueError, match=r"scores of 'a' must have shape \(n,\) with n >= 1, got shape \(0,\)"):
        plot_uncertainty_histograms([0.0], {"a": []})
    with pytest.raises(ValueError, match="names both"):
        plot_uncertainty_histograms([0.0], {"In distribution": [1.0]})
    with pytest.raises(ValueError, match="it is empty"):
        plot_uncertainty_histograms([0.0], {})
    with pytest.raises(ValueError, match="read the same"):
        plot_uncertainty_histograms([0.0], {1: [0.1], "1": [0.2]})
    with pytest.raises(TypeError, match="mapping name -> scores"):
        plot_uncertainty_histograms([0.0], [1.0])
    with pytest.raises(ValueError, match="bins must be a whole number"):
        plot_uncertainty_histograms([0.0], {"a": [1.0]}, bins=0)
    with pytest.raises(ValueError, match="threshold must be finite"):
        plot_uncertainty_histograms([0.0], {"a": [1.0]}, threshold=float("nan"))
    with pytest.raises(TypeError, match="real numbers, got dtype <U3"):
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


# --- curves ---


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
    with pytest.raises(ValueError, match=r"curve 'a': .* must lie from 0 to 1, got 95 at index 1\. Divide percentages"):
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


# --- reliability ---


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
    assert drawn == {curves_reliability.LINE: [0.3, 0.6, 0.9], curves_reliability.FEW: [0.1]}
    few = next(line for line in ax.lines if line.get_gid() == curves_reliability.FEW)
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
    with pytest.raises(ValueError, match="accuracy of the bins with inputs must be finite"):
        plot_reliability([0.3, 0.9], [np.nan, 0.5], [1, 1])
    with pytest.raises(ValueError, match="accuracy must lie from 0 to 1"):
        plot_reliability([0.3, 0.9], [50, 60], [1, 1])
    with pytest.raises(ValueError, match="edges must be 3 increasing numbers"):
        plot_reliability([0.3, 0.9], [0.5, 0.5], [1, 1], edges=[0, 1])


# --- trends ---


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_trends_show_mean_and_spread(count):
    rng = np.random.default_rng(count)
    series = {f"s{k}": (rng.random(5), rng.random(5) / 10) for k in range(count)}
    ax = plot_against_severity(series, "ECE")
    lines = [line for line in ax.lines if line.get_linestyle() != "None"]
    assert legend_of(ax) == list(series)
    for line, (mean, _) in zip(lines, series.values(), strict=True):
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


def test_many_members_need_a_logarithmic_axis():
    metric = {"AUROC": ([0.8, 0.9], [0, 0])}
    wide, narrow = (plot_members_needed(n, metric) for n in ([1, 1000], [2, 25]))
    assert (wide.get_xscale(), narrow.get_xscale()) == ("log", "linear")
    assert [text.get_text() for text in wide.get_xticklabels()] == ["1", "1000"]


def test_trends_refuse_what_they_cannot_show():
    one = {"a": ([0.8, 0.9], [0, 0])}
    with pytest.raises(ValueError, match="n_members must increase"):
        plot_members_needed([5, 2], one)
    with pytest.raises(ValueError, match="series 'a' has 2 values for 3 n_members"):
        plot_members_needed([1, 2, 3], one)
    with pytest.raises(ValueError, match="whole numbers of at least 1"):
        plot_members_needed([0, 2], one)
    with pytest.raises(ValueError, match="whole numbers of at least 1"):
        plot_members_needed([1, 2.5], one)
    with pytest.raises(ValueError, match=r"std must not be negative, got -1 at index 1"):
        plot_against_severity({"a": ([0.8, 0.9], [0, -1])}, "ECE")
    with pytest.raises(ValueError, match="series 'b' has 1 values for 2 severities"):
        plot_against_severity(one | {"b": ([0.1], [0])}, "ECE")


@pytest.mark.parametrize(
    "module",
    [curves, curves_reliability, curves_trends, distributions, distributions_members, style, style_axes],
)
def test_examples_run(module):
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_the_front_door_has_every_name():
    assert all(hasattr(figures, name) for name in figures.__all__)
