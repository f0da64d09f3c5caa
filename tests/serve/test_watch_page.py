"""The page at ``/`` in a real browser: no errors, nothing blocked, no request but to its own server.

Skipped where no Chromium or Chrome is installed.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from credalens import wrap
from credalens.guard import Guard
from credalens.serve import app, member_outputs
from tests.report.chromium import BROWSER, Chromium
from tests.serve.messages import request
from tests.strategies import batch_of

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed: the page is not opened")
EVIL = "<img src=x onerror=alert(1)>"  # a version with a slash is refused
GUARD = Guard.fit(wrap(batch_of("peaked", 3, 200, 4, seed=1)))


@contextmanager
def serving(application):
    """The address of a server that runs in a thread."""
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.02)
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def browser(tmp_path):
    opened = Chromium(tmp_path)
    yield opened
    opened.close()


def text(browser, selector):
    return browser.js(f"document.querySelector({selector!r}).textContent")


def test_the_page_shows_what_was_served_and_asks_nobody_else(browser):
    application = app(member_outputs(GUARD, version=EVIL), GUARD, tokens=["secret"])
    headers = {"Authorization": "Bearer secret"}
    with serving(application) as address, httpx.Client(base_url=address, headers=headers) as client:
        browser.open(address, width=390)
        browser.until("!document.querySelector('#access').hidden")  # without a token there are no numbers
        assert [problem for problem in browser.problems() if "401" not in problem] == []
        browser.events.clear()
        message = request({"probs": batch_of("mixed", 3, 40, 4)})
        for n in range(2):
            assert client.get("recent").status_code == 200  # a sample before the request, another after it
            if n == 0:
                client.post("v2/models/credal/infer", content=message.content).raise_for_status()
        browser.js("document.querySelector('#token').value = 'secret'")
        browser.click("#access button")
        browser.until("document.documentElement.dataset.ready > 1")
        assert "40 rows in 1 request:" in text(browser, "#headline")
        assert EVIL in text(browser, "#about")
        shown = [text(browser, f"figure:nth-of-type({n}) figcaption") for n in range(1, 7)]
        assert [words.split()[0] for words in shown] == [
            "Decisions", "Uncertainty", "Drift", "Answering", "Requests", "Batches",
        ]  # fmt: skip
        left, top, width, height = browser.box("figure .drawing")
        browser.mouse("mouseMoved", left + width - 5, top + height / 2)
        browser.until("document.querySelector('figure .readout').textContent.includes('accepted')")
        assert browser.js("document.documentElement.scrollWidth") == 390
        browser.click("#theme")
        assert browser.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"
        assert browser.problems() == []
        assert set(browser.requests()) <= {address, f"{address}recent"}
