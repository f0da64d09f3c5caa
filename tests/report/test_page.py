"""The page and its folder: well formed, self-contained, nothing of the user's text becomes markup, whole or not there."""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.evaluation import Threshold, evaluate
from credalens.evaluation.samples import view_members
from credalens.plots import style
from credalens.report import charts, figures, files
from credalens.report.elements import tag
from credalens.report.files import write_report
from credalens.report.images import png_uri
from credalens.report.member_charts import bars_chart, simplex_chart
from credalens.report.page import render_html
from credalens.report.svg import Axis, Plot, nice_ticks
from tests.strategies import batch_of, make_members

EVIL = "<script>alert('1')</script>\"&"
VOID = {"meta", "img", "input", "br"}
SECTIONS = ("short", "detection", "distributions", "prediction", "rejection", "alarm", "members", "inputs", "words")


@pytest.fixture(scope="module")
def found():
    known = batch_of("peaked", 4, 60, 3, seed=1)
    others = {"flat": batch_of("flat", 4, 40, 3, seed=2), EVIL: batch_of("mixed", 4, 40, 3, seed=3)}
    return evaluate(known, others, labels=np.arange(60) % 3, replicates=60, class_names=["cat", "dog", EVIL])


@pytest.fixture(scope="module")
def page(found):
    return render_html(found)


class Reader(HTMLParser):
    """Checks that tags are balanced, and collects what the page holds."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], Counter(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.tags[name] += 1
        self.attributes.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)
        if name not in VOID:
            self.open.pop()

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        if not {"script", "style"} & set(self.open):
            self.text.append(text)

    def values(self, attribute):
        return [found[attribute] for _, found in self.attributes if attribute in found]


def test_the_page_is_well_formed_with_all_sections(page):
    reader = Reader(page)
    ids = reader.values("id")
    assert len(ids) == len(set(ids))
    assert set(SECTIONS) <= set(ids)
    assert {f"#{name}" for name in SECTIONS} <= set(reader.values("href"))
    assert reader.tags["h1"] == 1
    for reference in reader.values("aria-labelledby") + reader.values("aria-describedby"):
        assert reference in ids


def test_nothing_is_loaded_from_anywhere(page):
    assert re.findall(r"""(?:https?:)?//[a-z0-9]""", page) == []
    assert "@import" not in page
    reader = Reader(page)
    assert not {"link", "iframe", "object", "embed", "base"} & set(reader.tags)
    assert all(value.startswith("data:") for value in reader.values("src"))
    assert all(value.startswith("#") for value in reader.values("href"))
    assert "default-src 'none'" in page


def test_names_never_become_markup(page):
    reader = Reader(page)
    assert reader.tags["script"] == 1
    assert page.count("<script") == 1
    shown = "".join(reader.text)
    assert EVIL in shown
    assert any(EVIL in label for label in reader.values("aria-label"))
    assert EVIL in reader.values("data-set")


def test_every_drawing_has_a_text_for_those_who_cannot_see_it(page):
    for name, attributes in Reader(page).attributes:
        if name == "svg":
            assert attributes.get("aria-hidden") == "true" or len(attributes["aria-label"]) > 10
        if name == "img":
            assert attributes["alt"]


def test_headings_of_tables_are_buttons(page):
    for table in re.findall(r'<table class="sortable".*?</table>', page, flags=re.DOTALL):
        head = re.search("<thead>(.*?)</thead>", table, flags=re.DOTALL)[1]
        assert head.count("<th ") == head.count("<button")
        assert all("data-value=" in cell for cell in re.findall(r"<t[dh] [^>]*>", table.split("</thead>")[1]))


def test_the_words_and_numbers_are_there(found, page):
    shown = " ".join("".join(Reader(page).text).split())
    said = found.words
    lines = [said.headline, said.plainly, said.prediction, said.threshold, said.members]
    lines += [finding.epistemic for finding in said.detection]
    for line in lines:
        assert " ".join(line.split()) in shown
    assert f"{100 * found.ood[1].total.classical.auprc:.2f}" in shown


def test_without_labels_the_page_says_what_is_missing():
    known = batch_of("peaked", 3, 30, 3, seed=1)
    page = render_html(evaluate(known, {"o": batch_of("flat", 3, 30, 3)}, replicates=60))
    Reader(page)
    assert page.count("Pass them with --labels") == 2
    assert "without labels" in page


@pytest.mark.parametrize("members", [1, 4])
def test_without_ood_data_the_page_and_the_figures_leave_detection_out(members, tmp_path):
    known = batch_of("peaked", members, 40, 3, seed=1)
    found = evaluate(known, {}, labels=np.arange(40) % 3, replicates=60)
    page = render_html(found)
    reader = Reader(page)
    sections = [dict(attributes).get("id") for name, attributes in reader.attributes if name == "section"]
    assert sections == [name for name in SECTIONS if name not in ("detection", "distributions")]
    body = page[page.index("<main") : page.index('<section id="words"')]
    assert not re.search("ROC|caught|None", body)
    assert "DeLong" not in page
    assert "Out of distribution: no data given." in page
    figures.save_figures(found, tmp_path / "figures")
    stems = {path.stem.split("-")[0] for path in (tmp_path / "figures").iterdir()}
    assert stems == {"reliability", "rejection", "bars", "simplex"}


@pytest.mark.filterwarnings("ignore:the members are nearly one-hot", "ignore:all members predict the same")
@pytest.mark.parametrize("kind", ["flat", "one_hot", "agreeing"])
@pytest.mark.parametrize(("members", "classes"), [(1, 2), (1, 3), (2, 2), (12, 15)])
def test_any_ensemble_makes_a_page(kind, members, classes):
    known, other = (batch_of(kind, members, 12, classes, seed=seed) for seed in (1, 2))
    found = evaluate(known, {"other": other}, labels=np.zeros(12, int), replicates=60)
    page = render_html(found)
    assert set(SECTIONS) <= set(Reader(page).values("id"))
    shown = re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|None|True)\b", shown)


def test_the_page_stays_small_with_many_data_sets():
    known = batch_of("peaked", 5, 400, 10, seed=1)
    others = {f"set {k}": known[:, : 200 + k] for k in range(8)}
    page = render_html(evaluate(known, others, labels=np.zeros(400, int), replicates=60))
    assert len(page.encode()) < 3_000_000


def test_the_style_sheet_has_the_colours_of_the_figures(page):
    for role in ("background", "text", "muted", "credal", "intersection", "averaged", "hull"):
        light, dark = (str(getattr(theme, role)).lower() for theme in (style.LIGHT, style.DARK))
        assert f"--{role}: light-dark({light}, {dark});" in page
    assert f"--line: light-dark({style.LIGHT.grid.lower()}, {style.DARK.grid.lower()});" in page


@settings(derandomize=True, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 8))
def test_ticks_are_few_round_and_inside(low, width, count):
    ticks = nice_ticks(low, low + width, count)
    margin = 1e-6 * max(width, abs(low) * 1e-6, 1e-9)
    assert all(low - margin <= tick <= low + width + margin for tick in ticks)
    assert 1 <= len(ticks) <= 2 * count + 1
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0]) if len(steps) else True


def test_data_land_where_the_axes_say():
    plot = Plot(Axis(0, 2, "x"), Axis(0, 1, "y"))
    (left, bottom), (right, top), (middle, centre) = plot.at(0, 0), plot.at(2, 1), plot.at(1, 0.5)
    assert (middle, centre) == ((left + right) / 2, (bottom + top) / 2)
    assert left < right
    assert top < bottom
    root = Plot(Axis(0, 2, "x"), Axis(0, 1, "y", root=True))
    assert root.at(1, 0.25)[1] == (bottom + top) / 2


def drawn_line(drawing, style):
    """The points of a line in data coordinates."""
    x0, x1, left, right = map(float, re.search('data-x="([^"]*)"', drawing)[1].split())
    y0, y1, bottom, top = map(float, re.search('data-y="([^"]*)"', drawing)[1].split())
    points = re.search(f'points="([^"]*)" class="line {style}"', drawing)[1]
    x, y = np.array([[float(value) for value in point.split(",")] for point in points.split()]).T
    return x0 + (x - left) / (right - left) * (x1 - x0), y0 + (y - bottom) / (top - bottom) * (y1 - y0)


def test_curves_are_drawn_through_their_points(found):
    one, curves = found.ood[0], found.curves.detection["flat"]
    fpr, tpr = curves.epistemic.credal.roc
    drawing = charts.roc_chart(curves, one)
    x, y = drawn_line(drawing, "credal epistemic")
    np.testing.assert_allclose(x, fpr, atol=1e-3)
    np.testing.assert_allclose(y, tpr, atol=1e-3)
    assert "AUROC" in drawing


def test_the_area_under_the_drawn_precision_is_the_auprc(found):
    one, curves = found.ood[0], found.curves.detection["flat"]
    for kind in ("credal", "classical"):
        x, y = drawn_line(charts.pr_chart(curves, one), f"{kind} total")
        area = (np.diff(x) * (y[1:] + y[:-1]) / 2).sum()
        assert area == pytest.approx(one.total.of(kind).auprc, abs=2e-3)


def test_member_bars_are_as_long_as_their_probabilities():
    members = make_members("flat", 3, 4, np.random.default_rng(0))
    drawing = bars_chart(view_members(members, 2), ["a", "b", "c", "d"])
    widths = [float(value) for value in re.findall(r'width="([\d.]*)" height="[\d.]*" class="member"', drawing)]
    np.testing.assert_allclose(np.array(widths) / widths[0], members.T.ravel() / members.T.ravel()[0], atol=0.01)
    assert "✓ c" in drawing
    assert drawing.count("filled") == 2


def test_many_members_are_dots():
    members = make_members("flat", 20, 3, np.random.default_rng(0))
    drawing = bars_chart(view_members(members, None), ["a", "b", "c"])
    assert drawing.count('class="member"') == 60
    assert "<circle" in drawing


def test_the_triangle_shows_members_set_hull_and_points():
    members = np.array([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
    drawing = simplex_chart(view_members(members, None).simplex, ["sun", "rain", "snow"])
    assert drawing.count('class="member"') == 3
    assert drawing.count('class="bound"') == 6
    assert all(part in drawing for part in ("credal-set", "hull", "intersection filled", "averaged filled"))
    assert all(text in drawing for text in ("sun", "10 to 70 %", "10 to 60 %", "20 to 70 %"))


def test_images_come_back_from_the_page(found):
    rng = np.random.default_rng(0)
    grey, colour = (rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((60, 5, 7), (40, 4, 6, 3)))
    page = render_html(found, images={"in-distribution": grey, "flat": colour})
    uris = {attributes["alt"]: attributes["src"] for name, attributes in Reader(page).attributes if name == "img"}
    for sample in found.samples:
        given_images = {"in-distribution": grey, "flat": colour}.get(sample.set)
        uri = uris.get(f"{sample.set}, row {sample.row}")
        assert (uri is None) == (given_images is None)
        if uri is not None:
            np.testing.assert_array_equal(decoded(uri), given_images[sample.row])


def decoded(uri):
    image = matplotlib.image.imread(io.BytesIO(base64.b64decode(uri.partition(",")[2])), format="png")
    return np.round(255 * image).astype(np.uint8)


def test_a_png_of_one_pixel():
    np.testing.assert_array_equal(decoded(png_uri(np.array([[7]], np.uint8))), [[7]])


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ({"nobody": np.zeros((60, 2, 2), np.uint8)}, "no data set"),
        ({"flat": np.zeros((3, 2, 2), np.uint8)}, "must be uint8 of shape"),
        ({"flat": np.zeros((40, 2, 2))}, "got float64"),
    ],
)
def test_images_that_do_not_fit(found, images, message):
    with pytest.raises(ValueError, match=message):
        render_html(found, images=images)


def test_attributes_are_escaped_and_none_is_left_out():
    assert tag("a", "x", href='"<', hidden=None, data_n=1.50) == '<a href="&quot;&lt;" data-n="1.5">x</a>'


def test_the_folder_holds_the_report(found, tmp_path):
    folder = found.report(tmp_path / "report")
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json", "threshold.json"]
    assert (folder / "report.json").read_text(encoding="utf-8") == found.to_json() + "\n"
    assert Threshold.load(folder / "threshold.json") == found.threshold
    assert (folder / "report.html").read_text(encoding="utf-8") == render_html(found)
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_an_older_report_is_replaced_and_other_files_stay(found, tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "report.json").write_text("old")
    write_report(found, folder)
    assert (folder / "notes.txt").read_text() == "mine"
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["format"] == "credalens-report-2"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize("name", ["roc flat", "pr flat", "reliability", "rejection total"])
def test_figures_have_the_colours_of_the_page(found, name):
    """Credal blue, averaging green, whatever the order they are drawn in."""
    legend = dict(figures._figures(found))[name]().get_legend()
    labels = [text.get_text() for text in legend.get_texts()]
    drawn = dict(zip(labels, (line.get_color() for line in legend.get_lines()), strict=True))
    assert len(drawn) in (2, 4)
    for label, color in drawn.items():
        ours = "credal" in label or "Intersection" in label
        assert color == (style.LIGHT.credal if ours else style.LIGHT.averaged)


def test_figures_are_files_of_their_own(found, tmp_path):
    folder = write_report(found, tmp_path / "report", figures=True) / "figures"
    names = sorted(path.name for path in folder.iterdir())
    assert {path.rsplit(".", 1)[1] for path in names} == {"png", "svg"}
    assert len(names) % 2 == 0
    for name in ("roc-flat", "pr-flat", "histogram-epistemic-credal", "reliability", "rejection-total", "members"):
        assert {f"{name}.png", f"{name}.svg"} <= set(names)
    assert any(name.startswith("bars-") for name in names)
    assert any(name.startswith("simplex-") for name in names)
    assert (folder / "roc-flat.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "error", [ValueError("no"), OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_an_error_leaves_no_folder_and_no_change(found, tmp_path, monkeypatch, error):
    folder = tmp_path / "report"
    write_report(found, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*args, **options):
        raise error

    monkeypatch.setattr(files, "render_html", fail)
    for target in (folder, tmp_path / "new"):
        with pytest.raises(type(error)):
            write_report(found, target)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_full_disk_is_said_on_one_line(found, tmp_path, monkeypatch):
    def full(self, *args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=r"cannot write .*report: No space left on device"):
        write_report(found, tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(found):
    with pytest.raises(OSError, match=r"cannot write /proc/.*/x: "):
        write_report(found, Path(f"/proc/{os.getpid()}/task/x"))
