"""Saving figures: the three formats, the same bytes each time, whole files or none."""

import os

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from credalens.plots.axes import render_figure, save_figure
from credalens.plots.series import plot_against_severity

STARTS = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF-"}


def names_in(folder):
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def figure():
    return plot_against_severity({"EU": ([0, 0.2, 1], [0, 0.1, 0.1])}, "ECE").figure


@pytest.mark.parametrize("form", STARTS)
def test_the_suffix_names_the_format(figure, tmp_path, form):
    path = save_figure(figure, tmp_path / f"roc.{form}")
    assert path.read_bytes().startswith(STARTS[form])
    assert names_in(tmp_path) == [f"roc.{form}"]


def test_suffix_in_capitals_and_path_as_text(figure, tmp_path):
    path = save_figure(figure, f"{tmp_path}/roc.PNG")
    assert path.read_bytes().startswith(STARTS["png"])


@pytest.mark.parametrize("form", STARTS)
def test_equal_figures_give_equal_bytes(form):
    first, second = (
        render_figure(plot_against_severity({"EU": ([0, 1], [0, 1])}, "ECE").figure, form) for _ in range(2)
    )
    assert first == second


def test_more_dots_per_inch_make_a_larger_image(figure):
    def width(image):
        return int.from_bytes(image[16:20], "big")

    assert width(render_figure(figure, "png", dpi=200)) == 2 * width(render_figure(figure, "png", dpi=100))


def test_a_figure_keeps_the_colour_of_its_theme(tmp_path):
    image = render_figure(plot_against_severity({"EU": ([0, 1], [0, 1])}, "ECE", theme="dark").figure, "svg")
    assert b"fill: #14181f" in image.lower()


def test_an_error_while_drawing_leaves_the_older_file(figure, tmp_path, monkeypatch):
    path = save_figure(figure, tmp_path / "roc.png")
    before = path.read_bytes()

    def broken(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(Figure, "savefig", broken)
    with pytest.raises(MemoryError):
        save_figure(figure, path)
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["roc.png"]


def test_a_full_disk_leaves_the_older_file_and_no_scrap(figure, tmp_path, monkeypatch):
    path = save_figure(figure, tmp_path / "roc.png")
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_figure(figure, path)
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["roc.png"]


def test_files_have_the_permissions_of_any_new_file(figure, tmp_path):
    (tmp_path / "plain").touch()
    saved = save_figure(figure, tmp_path / "roc.png").stat().st_mode
    assert saved == (tmp_path / "plain").stat().st_mode


def test_errors_say_what_to_do(figure, tmp_path):
    with pytest.raises(ValueError, match=r"end in \.png, \.svg or \.pdf, got .*roc\.jpg"):
        save_figure(figure, tmp_path / "roc.jpg")
    with pytest.raises(FileNotFoundError, match="does not exist: create it"):
        save_figure(figure, tmp_path / "missing" / "roc.png")
    with pytest.raises(TypeError, match=r"got Axes\. From Axes take ax\.figure"):
        save_figure(figure.axes[0], tmp_path / "roc.png")
    with pytest.raises(ValueError, match="form must be one of"):
        render_figure(figure, "gif")
    assert names_in(tmp_path) == []


def test_settings_are_as_before(figure, tmp_path):
    before = dict(mpl.rcParams)
    save_figure(figure, tmp_path / "roc.svg")
    assert dict(mpl.rcParams) == before
