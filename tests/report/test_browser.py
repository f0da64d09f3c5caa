"""The page in a real browser: no errors, nothing leaves it, charts are read off, and everything works as a reader uses it.

Skipped where no Chromium or Chrome is installed.
"""

from __future__ import annotations

import itertools
import re
import time

import numpy as np
import pytest

from credalens.evaluation import compare_models, evaluate
from credalens.report.comparison import render_comparison
from credalens.report.page import render_html
from tests.report.chromium import BROWSER, Chromium
from tests.strategies import batch_of

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed: the page is not opened")
EVIL = "</script><img src=x onerror=alert(1)><b>"
VISIBLE = "const visible = (node) => !!node.getClientRects().length;"
FOLDED = ("detection", "alarm", "prediction", "groups", "members", "inputs", "words")
"""What is a heading on a narrow screen until it is asked for."""
ROC, HISTOGRAM = "#detection figure:nth-of-type(1)", "#detection figure:nth-of-type(3)"


@pytest.fixture(scope="module")
def result():
    known = batch_of("peaked", 5, 80, 4, seed=1)
    others = {"photos": batch_of("flat", 5, 60, 4, seed=2), EVIL: batch_of("mixed", 5, 60, 4, seed=3)}
    names = ["cat", "dog", EVIL, "${alert(1)}"]
    return evaluate(known, others, labels=np.arange(80) % 4, replicates=60, class_names=names)


@pytest.fixture(scope="module")
def file(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(result), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Chromium(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def page(browser, file):
    """The page, opened anew; nothing may have gone wrong when a test is over."""
    browser.open(file)
    yield browser
    assert browser.problems() == []
    assert browser.requests() == [file.as_uri()]


def readout(page, figure):
    return page.js(f"document.querySelector({figure + ' .readout'!r}).textContent")


def point_at(page, figure, across, down=0.5, move=None):
    """Point until something is read off: charts that come alive move what is below them."""
    move = move or (lambda x, y: page.mouse("mouseMoved", x, y))
    end = time.monotonic() + 120
    for wiggle in itertools.cycle((0, 1)):
        left, top, width, height = page.box(f"{figure} .drawing")
        move(left + across * width + wiggle, top + down * height)
        if readout(page, figure):
            return
        assert time.monotonic() < end, f"nothing is read off {figure}"
        time.sleep(0.05)


def touch(page):
    """Put a finger on the page and lift it."""

    def tap(x, y):
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            page.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    return tap


def test_charts_are_read_off_by_pointer_and_keyboard(page, result):
    page.ready(ROC)
    point_at(page, ROC, 0.6)
    read = readout(page, ROC)
    assert re.fullmatch(r"false alarms \d+\.\d %: (.+ \d+\.\d %; ){3,4}.+ \d+\.\d %", read)
    at = float(re.search(r"alarms ([\d.]+) %", read)[1]) / 100
    lines = result.curves.detection[
        page.js(f"document.querySelector({ROC!r}).closest('details').querySelector('span').textContent")
    ]
    caught = float(re.search(r"credal epistemic ([\d.]+) %", read)[1])
    assert caught == pytest.approx(100 * np.interp(at, *lines["epistemic"].roc), abs=2.5)
    page.js(f"document.querySelector({ROC!r}).focus()")
    page.press("ArrowRight")
    first = readout(page, ROC)
    page.press("ArrowRight")
    assert first != readout(page, ROC) != ""


def test_histograms_and_single_marks_are_read_off(page):
    page.ready(HISTOGRAM)
    point_at(page, HISTOGRAM, 0.2)
    assert re.fullmatch(r"score [\d.]+: in distribution [\d.]+ %; OOD [\d.]+ %", readout(page, HISTOGRAM))
    page.click(f"{HISTOGRAM} summary")
    page.until(f"document.querySelectorAll('{HISTOGRAM} .values tbody tr').length > 5")
    ranking = "#scores figure"
    page.ready(ranking)
    point_at(page, ranking, 0.7, 0.3)
    assert re.search(r"points \(.*\): (better|worse|undecided)", readout(page, ranking))
    page.js(f"document.querySelector({ranking!r}).focus()")
    page.press("ArrowDown")
    assert readout(page, ranking).count("points (") == 1
    members = "#members figure"
    page.ready(members)
    point_at(page, members, 0.6)
    assert re.match(r"members \d: ", readout(page, members))


def x_axis(figure):
    """The ticks and the title of the axis of false alarms, as one text."""
    axes = f"[...document.querySelectorAll('{figure} .role-axis')].map((g) => g.textContent)"
    return f"{axes}.find((text) => text.includes('ID inputs'))"


def test_axes_zoom_and_change(page):
    page.ready(ROC)
    axis = x_axis(ROC)
    assert page.js(axis).startswith("0%5%10%15%20%")
    page.js(f"document.querySelector({ROC!r}).focus()")
    page.press("+")
    page.until(f"!{axis}.startsWith('0%5%10%15%20%')")
    page.press("0")
    page.until(f"{axis}.startsWith('0%5%10%15%20%')")
    page.click("input[name=axis][value=logarithmic]")
    page.until(f"{axis}.startsWith('0.1%')")
    page.click("input[name=axis][value=all]")
    page.until(f"{axis}.startsWith('0%20%')")


def test_the_legend_switches_a_score_off_everywhere_and_charts_follow_light_and_dark(page):
    page.ready(ROC)
    lines = f"document.querySelectorAll('{ROC} .mark-line path').length"
    before = page.js(lines)
    page.click("#detection input[data-series=epistemic]")
    page.until(f"{lines} === {before - 1}")
    same = page.js("[...document.querySelectorAll('input[data-series=epistemic]')].map((box) => box.checked)")
    assert len(same) == 3
    assert not any(same)
    assert page.js("document.querySelectorAll('tr.off[data-score=epistemic]').length") == 2
    point_at(page, ROC, 0.6)
    assert "credal epistemic" not in readout(page, ROC)
    color = f"getComputedStyle(document.querySelector('{ROC} .mark-line path')).stroke"
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.js(color), page.js(back)
    page.click("#theme")
    dark = page.js(color), page.js(back)
    assert light[1] == "rgb(255, 255, 255)"
    assert dark[1] == "rgb(20, 24, 31)"
    assert light[0] != dark[0]
    page.js("localStorage.clear()")


def test_the_slider_moves_sentences_tables_and_charts(page, result):
    page.ready(ROC)
    rule = f"document.querySelector('{ROC} .role-mark.mark-rule line').getAttribute('transform')"
    before, first = page.js(rule), page.js("document.querySelector('.outcome').textContent")
    assert first == result.words.threshold
    page.js(
        "const slider = document.querySelector('#rate'); slider.value = 0; slider.dispatchEvent(new Event('input'))"
    )
    page.until(f"{rule} !== {before!r}")
    said = page.js("[...document.querySelectorAll('.outcome')].map((node) => node.textContent)")
    assert all(text.startswith("To raise the alarm for at most 0.5\u00a0% of") for text in said)
    assert len(said) == 2
    lowest = min(
        result.thresholds, key=lambda alarm: (alarm.threshold.false_alarm_rate, alarm.score != result.alarm.score)
    )
    shown = page.js("[...document.querySelectorAll('#short tbody td:last-child')].map((cell) => cell.textContent)")
    assert shown == [f"{100 * share:.1f}" for share in (lowest.threshold.achieved_rate, *lowest.caught.values())]
    assert page.js("document.querySelector('#rate').ariaValueText") == "0.5 %"


def test_headings_sort_by_value(page):
    rows = "[...document.querySelectorAll('#alarm > .scroll tbody tr')]"
    cells = f"{rows}.map((row) => Number(row.cells[1].dataset.value))"
    before = page.js(cells)
    page.click("#alarm > .scroll thead th:nth-child(2) button")
    assert page.js(cells) == sorted(before, reverse=True) != before
    page.click("#alarm > .scroll thead th:nth-child(2) button")
    assert page.js(cells) == sorted(before)
    assert page.js("document.querySelectorAll('#alarm [aria-sort=ascending]').length") == 1


def test_inputs_are_listed_filtered_shown_and_names_stay_text(page, result):
    rows = (
        f"(() => {{ {VISIBLE} return [...document.querySelectorAll('#samples tbody tr')].filter(visible).length; }})()"
    )
    assert page.js(rows) == 12
    page.click("#more")
    assert page.js(rows) == len(result.samples)
    page.ready("#details article:not([hidden]) [data-chart]")
    text = page.js("document.querySelector('#details article:not([hidden]) svg').textContent")
    assert "${alert(1)}" in text
    assert "onerror" in page.js("document.body.innerText")
    assert page.js("document.querySelectorAll('img, b:empty').length") == 0
    page.js(
        "for (const [name, value] of [['set', 'photos'], ['groups', 'contradictory']]) { const select = "
        "document.querySelector(`select[data-filter=${name}]`); select.value = value; "
        "select.dispatchEvent(new Event('change', { bubbles: true })); }"
    )
    rows = page.js(
        f"(() => {{ {VISIBLE} return [...document.querySelectorAll('#samples tbody tr')].filter(visible)"
        ".map((row) => [row.dataset.set, row.dataset.groups]); })()"
    )
    assert len(rows) == 5
    assert all(name == "photos" and "contradictory" in groups for name, groups in rows)
    page.js("document.querySelectorAll('#samples tbody tr:not([hidden]) a')[1].focus()")
    shown = f"(() => {{ {VISIBLE} return [...document.querySelectorAll('#details > *')].filter(visible).length; }})()"
    assert page.js(shown) == 1
    page.ready("#details article:not([hidden]) [data-chart]")
    assert page.js("document.querySelectorAll('#details article:not([hidden]) svg').length") >= 1


@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_keeps_to_its_width_and_everything_has_a_name(browser, file, width):
    browser.open(file, width=width, dark=width == 390)
    folds = browser.js("[...document.querySelectorAll('details.part')].map((fold) => [fold.parentNode.id, fold.open])")
    assert folds == [] if width == 1400 else [[key, False] for key in FOLDED]
    if width == 390:
        assert browser.js("document.documentElement.scrollHeight") < 5000
        browser.click("nav a[href='#detection']")
        browser.until("document.querySelector('#detection > details').open")
        browser.js("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    browser.ready(ROC)
    if width == 390:
        point_at(browser, ROC, 0.5, move=touch(browser))
        assert readout(browser, ROC).startswith("false alarms")
    assert browser.js("document.documentElement.scrollWidth") == width
    rights = (
        "[...document.querySelectorAll('section, .chart, .sample, svg')].map((n) => n.getBoundingClientRect().right)"
    )
    assert max(browser.js(rights)) <= width + 1
    letters = f"[...document.querySelectorAll('{ROC} text')].map((text) => getComputedStyle(text).fontSize)"
    assert set(browser.js(letters)) == {"12px"}
    nameless = (
        "[...document.querySelectorAll('button, input, select')].filter((n) => n.getClientRects().length && "
        "!(n.textContent.trim() || n.labels?.length || n.ariaLabel)).length"
    )
    assert browser.js(nameless) == 0
    assert browser.problems() == []


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scripts", [True, False])
def test_no_name_is_cut_at_the_left_of_a_chart(browser, file, width, scripts):
    browser.open(file, width=width, scripts=scripts)
    if scripts:
        browser.ready("#scores figure")
    lefts = (
        "[...document.querySelectorAll('#scores figure svg text')].filter((n) => n.getClientRects().length)"
        ".map((n) => n.getBoundingClientRect().left - n.closest('figure').getBoundingClientRect().left)"
    )
    assert len(browser.js(lefts)) > 10
    assert min(browser.js(lefts)) >= 0
    hidden = "getComputedStyle(document.querySelector('#scores figure svg')).overflow"
    assert browser.js(hidden) == "visible"  # names are measured in another font than they are shown in


def test_words_in_tables_are_whole_on_a_narrow_screen(browser, file):
    """The name of data without a name, "in-distribution", is broken at its hyphen only."""
    browser.open(file, width=390)
    lines = browser.js(
        "(() => { const text = document.evaluate(\"//*[contains(@class,'outcomes')]//th[@scope='row']//text()"
        "[contains(.,'distribution')]\", document).iterateNext(), at = text.data.indexOf('distribution');"
        "const range = document.createRange(); range.setStart(text, at); range.setEnd(text, at + 12);"
        "return range.getClientRects().length; })()"
    )
    assert lines == 1


def test_without_scripts_charts_and_inputs_are_there(browser, file):
    browser.open(file, scripts=False)
    assert browser.js("document.querySelectorAll('#detection details[open] svg.marks').length") == 3
    assert browser.js("[...document.querySelectorAll('#details > *')].every((n) => n.getClientRects().length)")
    assert browser.js("[...document.querySelectorAll('.slider, .choice, .filters, #theme')].every((n) => n.hidden)")


def test_paper_shows_all_folds(browser, file):
    browser.open(file)
    assert browser.pdf().startswith(b"%PDF")
    assert browser.js("[...document.querySelectorAll('details.set')].every((fold) => fold.open)")


def test_models_on_one_page(browser, result, tmp_path):
    file = tmp_path / "models.html"
    names = {"one": result, EVIL: result}
    file.write_text(render_comparison(compare_models(names)), encoding="utf-8")
    browser.open(file, width=390)
    browser.click("#curves summary")
    roc = "#curves figure:nth-of-type(1)"
    browser.ready(roc)
    point_at(browser, roc, 0.6)
    assert re.fullmatch(rf"false alarms [\d.]+ %: one [\d.]+ %; {re.escape(EVIL)} [\d.]+ %", readout(browser, roc))
    lines = f"document.querySelectorAll('{roc} .mark-line path').length"
    browser.click("input[data-series='model 1']")
    browser.until(f"{lines} === 1")
    assert browser.js("document.documentElement.scrollWidth") == 390
    assert browser.problems() == []
    assert browser.requests() == [file.as_uri()]
