"""What all figures share: they fit their page in either theme, draw on given axes, and leave matplotlib as it was."""

import logging
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes

from credalens import plots
from credalens import theme as look
from credalens.plots import (
    axes,
    new_figure,
    plot_against_severity,
    plot_member_bars,
    plot_pia,
    plot_simplex,
    plot_simplex_panel,
    plot_uncertainty_histograms,
    themed,
)
from credalens.plots.axes import render_figure
from tests.plots.drawing import ensemble, legend_of

CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


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
        "severity": plot_against_severity(dict.fromkeys("abcd", (line[:5], line[:5] / 9)), "ECE", **options),
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_figure_fits_its_page_in_its_theme(theme, caplog):
    caplog.set_level(logging.WARNING)
    for name, ax in every_figure(theme=theme, title="A title of usual length").items():
        figure = ax.figure
        assert mpl.colors.to_hex(figure.get_facecolor()) == look.THEMES[theme].background.lower()
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
        (plot_against_severity, ({"a": ([1], [0])}, "ECE"), {}),
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
    plain = axes.new_figure().get_facecolor()
    with mpl.rc_context({"figure.facecolor": "pink", "axes.facecolor": "pink"}):
        assert axes.new_figure().get_facecolor() == plain
        assert mpl.colors.to_hex(every_figure()["severity"].get_facecolor()) == "#ffffff"


def test_no_window_and_no_pyplot():
    code = (
        "import sys, credalens.report\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from credalens.plots import *\n"
        "render_figure(plot_simplex([[1, 0, 0]], labels=tuple('abc')).figure, 'png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_are_shown_as_written():
    ax = plot_against_severity({r"$\broken": ([0, 1], [0, 1]), "_hidden": ([0, 1], [0, 1])}, "ECE")
    assert [name.strip("\u200b") for name in legend_of(ax)] == [r"$\broken", "_hidden"]
    ax.figure.draw_without_rendering()
    plot_member_bars([[0.5, 0.5]], class_names=("$x$ and $", r"$\x$")).figure.draw_without_rendering()
    plot_against_severity({"a": ([0, 1], [0, 1])}, "ECE", title=r"$\broken$").figure.draw_without_rendering()
    scores = [0.0, 0.1]
    histograms = plot_uncertainty_histograms(scores, {r"$\b$": scores}, id_name=r"$\i$", measure=r"$\m$")
    histograms.figure.draw_without_rendering()


@pytest.mark.filterwarnings("ignore:Glyph")
def test_control_characters_in_names_make_no_broken_svg():
    names = ("a\x1b", "b\x00", "c\n")
    ax = plot_simplex([[0.2, 0.3, 0.5]], labels=names, title="t\x1b")
    for drawn in (
        ax,
        plot_against_severity({"r\x1b": ([0, 1], [0, 1])}, "ECE"),
        plot_member_bars([[0.2, 0.3, 0.5]], class_names=names),
    ):
        assert not {"\x00", "\x1b"} & set(render_figure(drawn.figure, "svg").decode())


def test_the_front_door_has_every_name():
    assert all(hasattr(plots, name) for name in plots.__all__)
