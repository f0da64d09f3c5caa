"""The palette and the marks: colours that stand out, for every eye, and series that differ without colour."""

import matplotlib as mpl
import numpy as np
import pytest

from credalens import theme as look
from credalens.core.scores import SCORES
from credalens.plots import axes, plot_against_severity

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


@pytest.mark.parametrize("theme", look.THEMES.values(), ids=lambda theme: theme.name)
def test_colours_stand_out_from_the_background(theme):
    assert min(contrast(color, theme.background) for color in theme.palette) >= 3
    assert contrast(theme.text, theme.background) >= 7
    assert contrast(theme.muted, theme.background) >= 4.5


@pytest.mark.parametrize("theme", look.THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("vision", [np.eye(3), PROTAN, DEUTAN, TRITAN], ids=["all", "protan", "deutan", "tritan"])
def test_colours_differ_for_every_eye(theme, vision):
    seen = np.array([lab(np.array(vision) @ linear(color)) for color in theme.palette])
    distance = np.linalg.norm(seen[:, None] - seen, axis=-1) + 100 * np.eye(len(seen))
    assert distance.min() >= 18


def test_series_differ_without_colour():
    assert len({(axes.dash(k), axes.marker(k)) for k in range(35)}) == 35
    ax = plot_against_severity({str(k): ([k], [0]) for k in range(7)}, "ECE")
    assert len({line.get_marker() for line in ax.lines if line.get_marker() in look.MARKERS}) == 7


def test_every_score_has_a_line_of_its_own():
    assert set(SCORES) < set(look.STROKES)
    assert len(set(map(tuple, (look.STROKES[name] for name in SCORES)))) == len(SCORES)


def test_an_unknown_theme_is_named():
    with pytest.raises(ValueError, match=r"\['dark', 'light'\] or a Theme, got 'sepia'"):
        plot_against_severity({"a": ([0, 1], [0, 1])}, "ECE", theme="sepia")
