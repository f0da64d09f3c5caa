"""The page and its folder: well formed, self-contained, nothing of the user's text becomes markup, whole or not there."""

from __future__ import annotations

import base64
import html
import io
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from credalens.checks.options import escaped
from credalens.evaluation import evaluate
from credalens.evaluation.data_sets import read_images
from credalens.report import figures
from credalens.report.figures import interactive_script, png_uri
from credalens.report.page import render_html
from credalens.theme import DARK, LIGHT
from tests.report.large import large_evaluation
from tests.strategies import batch_of

EVIL = "<script>alert('1')</script>\"&"
VOID = {"meta", "img", "input", "br"}
SECTIONS = ("short", "scores", "detection", "alarm", "prediction", "groups", "members", "inputs", "words")


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


def written(page):
    """What was written for these data: the page without the script that draws charts, the same in every page."""
    return re.sub(r'<script type="text/plain" id="library">.*?</script>', "", page, count=1, flags=re.DOTALL)


def test_nothing_is_loaded_from_anywhere(page):
    addresses = set(re.findall(r"https?://[^\"\s]*", written(page)))
    language, licence = "https://vega.github.io/schema/vega-lite/v6.json", "http://www.apache.org/licenses/LICENSE-2.0"
    assert addresses <= {language, licence}  # which are never asked for
    assert "@import" not in written(page)
    reader = Reader(page)
    assert not {"link", "iframe", "object", "embed", "base"} & set(reader.tags)
    assert all(value.startswith("data:") for value in reader.values("src"))
    assert all(value.startswith("#") for value in reader.values("href"))
    assert "default-src &#39;none&#39;" in page
    assert "unsafe-eval" not in written(page)


def test_names_never_become_markup(page):
    reader = Reader(page)
    assert reader.tags["script"] == 6
    assert written(page).count("<script") == 5
    shown = "".join(reader.text)
    assert EVIL in shown
    assert any(EVIL in label for label in reader.values("aria-label"))
    assert EVIL in reader.values("data-set")


def test_every_chart_has_words_and_values_for_those_who_cannot_see_it(page):
    for name, attributes in Reader(page).attributes:
        if name == "figure":
            assert len(attributes["aria-label"]) > 10
        if name == "svg":
            assert attributes["aria-hidden"] == "true"
        if name == "img":
            assert attributes["alt"]
    assert page.count("<figure") == page.count("<caption>Values: ")


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
    assert f"{100 * found.ood[1].total.averaged.auprc:.2f}" in shown


def test_without_labels_the_page_says_what_is_missing(undrawn):
    known = batch_of("peaked", 3, 30, 3, seed=1)
    page = render_html(evaluate(known, {"o": batch_of("flat", 3, 30, 3)}, replicates=60))
    Reader(page)
    assert "Pass them with --labels" in page
    assert "without labels" in page


@pytest.mark.parametrize("members", [1, 4])
def test_without_ood_data_the_page_and_the_figures_leave_detection_out(members, undrawn, tmp_path):
    known = batch_of("peaked", members, 40, 3, seed=1)
    found = evaluate(known, {}, labels=np.arange(40) % 3, replicates=60)
    page = render_html(found)
    reader = Reader(page)
    sections = [dict(attributes).get("id") for name, attributes in reader.attributes if name == "section"]
    assert sections == [name for name in SECTIONS if name not in ("scores", "detection")]
    body = page[page.index("<main") : page.index('<section id="words"')]
    assert not re.search("ROC|that catches|None", body)
    assert "DeLong" not in page
    assert "Out of distribution: no data given." in page
    figures.save_figures(found, tmp_path / "figures")
    stems = {path.stem.split("-")[0] for path in (tmp_path / "figures").iterdir()}
    assert stems == {"reliability", "rejection", "bars", "simplex"} | ({"members"} if members > 1 else set())


@pytest.mark.filterwarnings("ignore:the members are nearly one-hot", "ignore:all members predict the same")
@pytest.mark.parametrize(
    ("kind", "members", "classes"), [("flat", 1, 2), ("one_hot", 1, 3), ("agreeing", 2, 2), ("flat", 12, 15)]
)
def test_any_ensemble_makes_a_page(kind, members, classes):
    known, other = (batch_of(kind, members, 12, classes, seed=seed) for seed in (1, 2))
    found = evaluate(known, {"other": other}, labels=np.zeros(12, int), replicates=60)
    page = render_html(found)
    assert set(SECTIONS) <= set(Reader(page).values("id"))
    shown = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|None|True|NaN)\b", shown)


def test_many_sets_classes_and_long_names_stay_readable(undrawn):
    """Twelve OOD sets, a thousand classes, names of sixty characters."""
    found = large_evaluation()
    assert "of 12 OOD data sets" in found.words.threshold
    page = render_html(found)
    assert len(page.encode()) < 2_000_000  # without the pictures of charts, about half a million
    assert "and 8 more data sets" in page
    assert "6 more data sets</summary>" in page
    assert "all are in report.json" in page
    assert "…" not in page[page.index("<main") : page.index("</main>")]


def test_the_page_shows_what_a_guard_would_have_done(found, page):
    assert "<caption>What would have happened</caption>" in page
    assert page.count("guard.json next to this page") == (found.guard is not None)


def test_a_notebook_shows_sentences_and_tables_as_text(found):
    shown = found._repr_html_()
    reader = Reader(shown)
    assert reader.tags["table"] == 2
    assert not {"script", "style"} & set(reader.tags)
    assert EVIL in "".join(reader.text)


def test_the_style_sheet_has_the_colours_of_the_figures(page):
    for role in ("background", "text", "muted", "credal", "intersection", "averaged", "hull"):
        assert f"--{role}: light-dark({getattr(LIGHT, role).lower()}, {getattr(DARK, role).lower()});" in page
    assert f"--line: light-dark({LIGHT.grid.lower()}, {DARK.grid.lower()});" in page


def test_the_slider_knows_every_cell_that_depends_on_it(found, page):
    """Each cell says at the wanted rate what the slider would write there."""
    texts = json.loads(re.search(r'id="live">(.*?)</script>', page, flags=re.DOTALL)[1])
    live = next(one for one in texts if one["rate"] == found.settings.false_alarm_rate)
    cells = dict(re.findall(r'data-live="([^"]+)"[^>]*>([^<]+)<', page))
    assert set(cells) == set(live["texts"])
    for name, text in cells.items():
        assert html.unescape(text) == live["texts"][name]
    assert live["thresholds"][found.threshold.name] == found.threshold.value


def test_images_come_back_from_the_page(found, undrawn):
    rng = np.random.default_rng(0)
    grey, colour = (rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((60, 5, 7), (40, 4, 6, 3)))
    page = render_html(found, images={"in-distribution": grey, "flat": colour})
    earlier = replace(found, pictures=_pictures_of(found, grey, colour))
    assert render_html(earlier) == page
    uris = {attributes["alt"]: attributes["src"] for name, attributes in Reader(page).attributes if name == "img"}
    for sample in found.samples:
        given_images = {"in-distribution": grey, "flat": colour}.get(sample.set)
        uri = uris.get(f"{sample.set}, row {sample.row}")
        assert (uri is None) == (given_images is None)
        if uri is not None:
            np.testing.assert_array_equal(decoded(uri), given_images[sample.row])


def _pictures_of(found, grey, colour):
    images = {"in-distribution": grey, "flat": colour}
    return {(one.set, one.row): images[one.set][one.row] for one in found.samples if one.set in images}


def decoded(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_images_of_every_kind_are_the_same_bytes():
    rgb = np.random.default_rng(0).integers(0, 256, (2, 5, 7, 3), dtype=np.uint8)
    for images in (rgb, np.moveaxis(rgb, -1, 1), rgb / 255, np.moveaxis(rgb, -1, 1).astype(np.float32) / 255):
        np.testing.assert_array_equal(read_images(images, 2, "a"), rgb)
    for grey in (rgb[..., :1], rgb[..., 0], np.moveaxis(rgb[..., :1], -1, 1)):
        np.testing.assert_array_equal(read_images(grey, 2, "a"), rgb[..., 0])
    np.testing.assert_array_equal(decoded(png_uri(rgb[0])), rgb[0])


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ({"nobody": np.zeros((60, 2, 2), np.uint8)}, "not a data set"),
        ({"flat": np.zeros((3, 2, 2), np.uint8)}, r"one for each input .* got shape \(3, 2, 2\)"),
        ({"flat": np.zeros((40, 2, 2, 5), np.uint8)}, r"1, 3 or 4 channels; got shape \(40, 2, 2, 5\)"),
        ({"flat": np.full((40, 2, 2), 3.0)}, "floats from 0 to 1; got float64 from 3 to 3"),
        ({"flat": np.full((40, 2, 2), np.nan)}, "floats from 0 to 1; got float64"),
        ({"flat": np.zeros((40, 2, 2), int)}, "must be uint8, or floats from 0 to 1; got int64"),
    ],
)
def test_images_that_do_not_fit(found, images, message):
    with pytest.raises(ValueError, match=message):
        render_html(found, images=images)


@pytest.mark.parametrize("name", ["a\x1b[31m\0b\nc", "a\ud800\uffff"])
def test_names_that_no_drawing_takes_are_written_out(name, tmp_path):
    known, other = batch_of("peaked", 3, 30, 3), {f"o{name}": batch_of("flat", 3, 30, 3)}
    groups = {f"g{name}": [f"v{name}", "w"] * 15}
    found = evaluate(
        known,
        other,
        labels=np.arange(30) % 3,
        replicates=40,
        class_names=[name, "b", "c"],
        id_name=f"i{name}",
        groups=groups,
    )
    folder = found.report(tmp_path / "out", title=f"t{name}", made=[f"m{name}"], figures=True)
    page, shown = (folder / "report.html").read_text(encoding="utf-8"), escaped(name)
    reader = Reader(page)
    for letter in "oigvtm":
        assert f"{letter}{shown}" in "".join(reader.text)
    assert name not in page
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["data"]["class_names"][0] == shown


def test_the_page_names_those_who_made_what_it_carries(page):
    [notice] = re.findall(r"<!--\s*NOTICE(.*?)-->", page, flags=re.DOTALL)
    script = interactive_script()  # where a part of it has gone, its notice can go too
    parts = {
        "vegaEmbed": "Vega-Embed",
        "SEMVER": "semver",
        "JsonPatchError": "fast-json-patch",
        "debounce": "lodash.debounce",
    }
    for mark, part in parts.items():
        assert mark in script, mark
        assert f"\n{part}: Copyright" in notice, part
    for word in ("Vega, with", "Vega-Lite", "D3, with", "topojson-client"):
        assert f"\n{word}" in notice
    for word in (
        "Copyright",
        "BSD 3-Clause",
        "ISC",
        "MIT",
        "Apache",
        "WITHOUT WARRANTY OF ANY KIND",
        "Redistributions in binary",
    ):
        assert word in notice
    assert "--" not in notice
