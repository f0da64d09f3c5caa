"""The page in a real browser: no errors, everything visible, sorting, filtering, reading off and themes work.

A script is put into a copy of the page, acts as a reader would and writes what it saw into the page, which the browser
then prints. Skipped where no Chromium or Chrome is installed.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from credalens.evaluation import evaluate
from credalens.report.page import render_html
from tests.strategies import batch_of

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--virtual-time-budget=2000",
)  # fmt: skip
LISTEN = """
window.seen = { errors: [] };
addEventListener("error", (event) => seen.errors.push(String(event.message)));
for (const name of ["error", "warn"]) console[name] = (...all) => seen.errors.push(all.join(" "));
addEventListener("securitypolicyviolation", (event) => seen.errors.push("blocked " + event.blockedURI));
"""
ACT = """
const all = (query) => [...document.querySelectorAll(query)], one = (query) => document.querySelector(query);
const visible = (node) => !!node.getClientRects().length;
const column = (table, n) => [...table.tBodies[0].rows].map((row) => row.cells[n].dataset.value);
const press = (node, key) => node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
seen.sections = all("main > section").filter(visible).map((section) => section.id);
seen.overflow = document.documentElement.scrollWidth - innerWidth;
seen.width = innerWidth;
const tooWide = (node) => visible(node) && node.getBoundingClientRect().right > innerWidth + 1;
seen.outside = all("section, .chart, .sample").filter(tooWide).length;
seen.cut = all(".scroll").filter((node) => visible(node) && node.scrollWidth > node.clientWidth + 1).length;
seen.shaded = all(".scroll").filter((node) => getComputedStyle(node).backgroundImage !== "none").length;

const table = one("#detection table.sortable"), head = table.tHead.rows[0].cells;
seen.before = column(table, 2);
head[2].querySelector("button").click();
seen.down = column(table, 2); seen.sort = head[2].getAttribute("aria-sort");
head[2].querySelector("button").click();
seen.up = column(table, 2); seen.sort2 = head[2].getAttribute("aria-sort");
head[0].querySelector("button").click();
seen.names = column(table, 0); seen.sorts = all("#detection [aria-sort]").length;

const rows = all("#samples tbody tr");
const pick = (name, value) => {
  const select = one(`select[data-filter=${name}]`);
  select.value = value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
};
pick("set", "photos"); pick("groups", "contradictory");
seen.filtered = rows.filter(visible).map((row) => [row.dataset.set, row.dataset.groups]);
seen.counted = one("#shown").textContent;
pick("set", ""); pick("groups", "");
seen.unfiltered = rows.filter(visible).length === rows.length;
const link = rows[3].querySelector("a");
link.focus();
seen.focused = all("#details > *").filter(visible).map((n) => n.id);
rows[5].dispatchEvent(new PointerEvent("pointerenter", { pointerType: "mouse" }));
seen.hovered = all("#details > *").filter(visible).map((n) => n.id);
rows[7].click();
rows[2].dispatchEvent(new PointerEvent("pointerenter", { pointerType: "mouse" }));
one("#samples tbody").dispatchEvent(new PointerEvent("pointerleave"));
seen.kept = all("#details > *").filter(visible).map((n) => n.id);

const chart = one("#detection svg.plot"), box = chart.getBoundingClientRect();
chart.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 20 }));
seen.readout = chart.nextElementSibling.textContent;
chart.dispatchEvent(new PointerEvent("pointerleave"));
press(chart, "ArrowRight");
seen.keyed = chart.nextElementSibling.textContent;

const bars = one("#distributions svg.plot"), frame = bars.getBoundingClientRect();
const [, , left, right] = bars.dataset.x.split(" ").map(Number), unit = frame.width / bars.viewBox.baseVal.width;
bars.dispatchEvent(new PointerEvent("pointermove", { clientX: frame.left + unit * (left + (right - left) / 80) }));
seen.bin = bars.nextElementSibling.textContent;

const slider = one("#rate"), shown = () => all("#rates > *").filter(visible).map((n) => n.dataset.rate);
seen.rate = shown();
slider.value = slider.max; slider.dispatchEvent(new Event("input"));
seen.rate2 = [...shown(), one("#rate-value").textContent];

const kinds = () => [...new Set(all("#distributions figure").filter(visible).map((n) => n.dataset.kind))];
seen.kinds = kinds();
one("#distributions input[value=classical]").click();
seen.kinds2 = kinds();

const colours = () => getComputedStyle(document.body).backgroundColor;
seen.light = colours(); one("#theme").click(); seen.dark = colours();
seen.label = one("#theme").textContent;
const scale = (svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
seen.letters = Math.min(...all("svg.plot").filter(visible).map((svg) => 11 * scale(svg)));

const reachable = all("a[href], button, input, select, [tabindex='0']").filter(visible);
seen.skip = document.querySelector("a, button, input").className;
seen.tabbable = reachable.every((n) => n.tabIndex >= 0);
const named = (node) => node.textContent.trim() || node.labels?.length || node.ariaLabel;
seen.nameless = all("button, input, select").filter((node) => visible(node) && !named(node)).length;
parent.postMessage(JSON.stringify(seen), "*");
"""
FRAME = """<!DOCTYPE html><title></title><body style="margin: 0">
<script>addEventListener("message", (event) => { document.title = event.data; });</script>
<iframe src="page.html" style="border: 0; width: %dpx; height: 844px"></iframe>
"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed: the page is not opened")


@pytest.fixture(scope="module")
def result():
    known = batch_of("peaked", 5, 80, 4, seed=1)
    others = {"photos": batch_of("flat", 5, 60, 4, seed=2), "</script><b>": batch_of("mixed", 5, 60, 4, seed=3)}
    labels = np.arange(80) % 4
    return evaluate(known, others, labels=labels, replicates=60)


@pytest.fixture(scope="module")
def page(result):
    return render_html(result)


def open_page(page, folder, width):
    """What the page's own script and the one put into it saw. A window cannot be as narrow as a phone, a frame can."""
    changed = page.replace("<meta charset", f"<script>{LISTEN}</script><meta charset", 1)
    changed = changed.replace("</body>", f"<script>{ACT}</script></body>", 1)
    (folder / "page.html").write_text(changed, encoding="utf-8")
    (folder / "frame.html").write_text(FRAME % width, encoding="utf-8")
    command = [BROWSER, *OPTIONS, f"--user-data-dir={folder / 'profile'}", "--window-size=1300,900", "--dump-dom"]
    done = subprocess.run([*command, (folder / "frame.html").as_uri()], capture_output=True, text=True, timeout=120)
    title = re.search("<title>(.+?)</title>", done.stdout, flags=re.DOTALL)
    assert title, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return json.loads(html.unescape(title[1]))


@pytest.fixture(scope="module")
def seen(page, tmp_path_factory):
    return open_page(page, tmp_path_factory.mktemp("wide"), 1280)


@pytest.fixture(scope="module")
def phone(page, tmp_path_factory):
    return open_page(page, tmp_path_factory.mktemp("phone"), 390)


@pytest.fixture(scope="module")
def printed(page, tmp_path_factory):
    """The style of print on the screen, as wide as A4 between its margins."""
    assert page.count("@media print") == 1
    return open_page(page.replace("@media print", "@media all"), tmp_path_factory.mktemp("paper"), 703)


def test_no_errors_and_nothing_blocked(seen, phone):
    assert seen["errors"] == phone["errors"] == []


def test_paper_shows_whole_tables_on_white(printed, phone):
    assert (printed["cut"], printed["shaded"], printed["overflow"], printed["outside"]) == (0, 0, 0, 0)
    assert phone["cut"] > 0
    assert phone["shaded"] > 0
    assert printed["light"] == printed["dark"] == "rgb(255, 255, 255)"


def test_all_sections_are_visible(seen):
    assert seen["sections"] == [
        "short", "detection", "distributions", "prediction", "rejection", "alarm", "members", "inputs", "words",
    ]  # fmt: skip


def test_headings_sort_by_value(seen):
    numbers = [float(value) for value in seen["before"]]
    assert [float(value) for value in seen["down"]] == sorted(numbers, reverse=True) != numbers
    assert [float(value) for value in seen["up"]] == sorted(numbers)
    assert (seen["sort"], seen["sort2"], seen["sorts"]) == ("descending", "ascending", 1)
    assert seen["names"] == sorted(seen["names"])


def test_inputs_can_be_filtered(seen):
    assert len(seen["filtered"]) == 5
    assert all(name == "photos" and "contradictory" in groups for name, groups in seen["filtered"])
    assert seen["counted"].startswith("5 of ")
    assert seen["unfiltered"]


def test_focus_and_hover_show_an_input_and_a_click_keeps_it(seen):
    assert (seen["focused"], seen["hovered"], seen["kept"]) == (["sample-3"], ["sample-5"], ["sample-7"])


def test_a_chart_can_be_read_off_by_mouse_and_by_keyboard(seen):
    pattern = (
        r"At \d+\.\d %: EU, credal \d+\.\d %; EU, averaging \d+\.\d %; TU, credal \d+\.\d %; TU, averaging \d+\.\d %"
    )
    assert re.fullmatch(pattern, seen["readout"])
    assert re.fullmatch(pattern, seen["keyed"])
    assert seen["keyed"] != seen["readout"]


def test_a_histogram_on_a_root_scale_is_read_off_in_shares(seen, result):
    """The first of 40 bins, pointed at in its middle."""
    shares = result.curves.histograms.epistemic.credal.share
    read = re.fullmatch(r"At [\d.]+: in-distribution ([\d.]+) %; photos ([\d.]+) %", seen["bin"])
    assert float(read[1]) == pytest.approx(100 * shares["in-distribution"][0], abs=0.5)
    assert float(read[2]) == pytest.approx(100 * shares["photos"][0], abs=0.5)


def test_the_slider_changes_the_table(seen):
    assert seen["rate"] == ["5 %"]
    assert seen["rate2"] == ["50 %", "50 %"]


def test_the_kind_of_histogram_can_be_chosen(seen):
    assert (seen["kinds"], seen["kinds2"]) == (["credal"], ["classical"])


def test_light_and_dark(seen):
    assert (seen["light"], seen["dark"], seen["label"]) == ("rgb(255, 255, 255)", "rgb(20, 24, 31)", "Light")


def test_everything_is_reached_by_keyboard_and_has_a_name(seen):
    assert seen["skip"] == "skip"
    assert seen["tabbable"]
    assert seen["nameless"] == 0


def test_a_phone_shows_the_page_in_its_width_and_legible(phone, seen):
    assert phone["overflow"] <= 0
    assert phone["width"] == 390
    assert phone["outside"] == seen["outside"] == 0
    assert phone["letters"] >= 10
    assert seen["letters"] >= 9
    assert phone["sections"] == seen["sections"]


def test_without_scripts_every_input_is_shown(page, tmp_path):
    bare = re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)
    assert 'id="sample-0"' in bare
    hidden = re.findall(r'<(\w+)[^>]* hidden(?:="")?[ >]', bare)
    assert set(hidden) <= {"p", "button", "div"}  # what only a script can use, and the other thresholds
