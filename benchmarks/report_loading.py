"""How soon a page of the report answers its reader, in Chromium: `python -m benchmarks.report_loading`.

First view: the slider is moved and the sentence below it follows. First chart: the reader goes to it at once, and it is read
off at the pointer. Both are tried every 10 ms from the start of the navigation on, in openings of their own, with the
processor as it is and slowed down four times. Beside the time on the clock stands the processor time of the page's main
thread until then, which other work on the machine does not lengthen. Writes results/report_loading.json and the table of
docs/report.md.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.provenance import provenance
from credalens.demo.run import evaluate_real_networks
from credalens.evaluation import Evaluation
from credalens.report.page import render_html
from tests.report.chromium import Chromium
from tests.report.large import large_evaluation

OPENINGS, SLOWED, LONGEST = 7, (1, 4), 60.0
LARGE: Final = "12 OOD sets, 1000 classes, names of 60 letters"
RESULTS, PAGE = Path("results/report_loading.json"), Path("docs/report.md")
TRIALS: Final = {
    "first_view": """
      const slider = document.querySelector("#rate"), said = document.querySelector(".outcome"), before = said.textContent;
      slider.value = 0;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      return said.textContent !== before;
    """,
    "first_chart": """
      const drawing = document.querySelector("#scores .drawing");
      if (!window.place) {
        drawing.scrollIntoView({ block: "center" });
        const { left, top, width, height } = drawing.getBoundingClientRect();
        window.place = { clientX: left + width / 2, clientY: top + height / 2 };
      }
      drawing.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, ...window.place }));
      return drawing.parentNode.querySelector(".readout").textContent !== "";
    """,
}
"""What a reader tries, as the body of a function; true once the page has answered."""
PROBE: Final = """
  const attempt = () => { %s };
  const timer = setInterval(() => {
    try {
      if (!attempt()) return;
      window.answered = performance.mark("answered").startTime / 1000;
      clearInterval(timer);
    } catch { /* not there yet */ }
  }, 10);
"""
HEADINGS: Final = "| page | processor | first view answers | main thread | first chart is read off | main thread |"


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Every page at every speed."""
    browser = Chromium(folder / "profile")
    for name, page in _pages(folder):
        for slowed in SLOWED:
            browser.send("Emulation.setCPUThrottlingRate", rate=slowed)
            openings = {trial: _openings(browser, page, trial) for trial in TRIALS}
            yield {"page": name, "bytes": page.stat().st_size, "slowed": slowed, "openings": openings}
    browser.close()


def _pages(folder: Path) -> Iterator[tuple[str, Path]]:
    makers: dict[str, Callable[[], Evaluation]] = {"demo": evaluate_real_networks, LARGE: large_evaluation}
    for name, make in makers.items():
        page = folder / "page.html"
        page.write_text(render_html(make()), encoding="utf-8")
        yield name, page


def _openings(browser: Chromium, page: Path, trial: str) -> dict[str, list[float]]:
    probe = browser.send("Page.addScriptToEvaluateOnNewDocument", source=PROBE % TRIALS[trial])["identifier"]
    openings = [_opening(browser, page) for _ in range(OPENINGS)]
    browser.send("Page.removeScriptToEvaluateOnNewDocument", identifier=probe)
    return {"seconds": [seconds for seconds, _ in openings], "main_thread": [thread for _, thread in openings]}


def _opening(browser: Chromium, page: Path) -> tuple[float, float]:
    """Seconds until the page answered, on the clock and of its main thread's processor time."""
    browser.send("Page.navigate", url="about:blank")
    browser.start_trace("toplevel", "blink.user_timing")
    browser.open(page)
    browser.until("window.answered !== undefined", LONGEST)
    time.sleep(0.5)  # what the page does when it is idle belongs to this opening
    events = browser.end_trace()
    answer = next(event for event in events if event["name"] == "answered")
    of_thread = [e["tts"] for e in events if (e["pid"], e["tid"]) == (answer["pid"], answer["tid"]) and "tts" in e]
    return round(float(browser.js("window.answered")), 3), round((answer["tts"] - min(of_thread)) / 1e6, 3)


def table(content: dict[str, Any]) -> str:
    """The rows for the document: medians, and the slowest opening in brackets."""
    lines = [HEADINGS, "|---|---|---|---|---|---|"]
    for row in content["pages"]:
        cells = [f"{row['page']}, {row['bytes'] / 1e6:.1f} MB"]
        cells.append("as it is" if row["slowed"] == 1 else f"slowed {row['slowed']} times")
        for openings in row["openings"].values():
            cells.append(f"{median(openings['seconds']):.2f} s ({max(openings['seconds']):.2f})")
            cells.append(f"{median(openings['main_thread']):.2f} s")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write both."""
    made = provenance()
    with TemporaryDirectory() as folder:
        pages = list(measure(Path(folder)))
    content = {"openings": OPENINGS, "provenance": made, "pages": pages}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    document = PAGE.read_text(encoding="utf-8")
    old = re.compile(re.escape(HEADINGS) + r"(\n\|.*)*")
    PAGE.write_text(old.sub(lambda _: table(content), document), encoding="utf-8")


if __name__ == "__main__":
    main()
