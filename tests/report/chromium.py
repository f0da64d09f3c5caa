"""A real browser, driven as a reader would: Chromium by its debugging pipe, without further packages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


class Chromium:
    """One browser with one page."""

    def __init__(self, profile: Path):
        here, there = os.pipe(), os.pipe()  # the browser reads from 3 and writes to 4
        self._to, self._from = here[1], there[0]

        # A shell connects them: Python code between fork and exec would run the handlers that libraries register for forks.
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        pipes = [os.dup(here[0]), os.dup(there[1])]
        command = [BROWSER or "chromium", *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", script, "connect", *map(str, pipes), *command],
            pass_fds=pipes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for pipe in (here[0], there[1], *pipes):
            os.close(pipe)
        self._number, self._buffer = 0, b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._from, 1 << 16)
            assert part, "the browser went away"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(
        self, path: Path | str, *, width: int = 1400, height: int = 900, dark: bool = False, scripts: bool = True
    ) -> None:
        """Show a file or an address in a window of this size, until it is laid out."""
        self.events.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.send("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self.until("document.readyState == 'complete' && !document.documentElement.matches('.loading')")

    def js(self, code: str) -> Any:
        """The value of an expression, promises awaited."""
        done = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, code: str, seconds: float = 120) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.js(code):
            assert time.monotonic() < end, f"never true: {code}"
            time.sleep(0.05)

    def ready(self, selector: str) -> None:
        """Scroll to a chart and wait until it is alive."""
        self.js(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        self.until(f"document.querySelector({json.dumps(selector)}).dataset.ready !== undefined")

    def box(self, selector: str) -> list[float]:
        """Left, top, width and height in the window."""
        box: list[float] = self.js(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [b.left, b.top, b.width, b.height]; })()"
        )
        return box

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Move, press or release the mouse."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str) -> None:
        """Scroll to an element and click in its middle, at once: charts that come alive move what is below them."""
        missed = self.js(
            f"(() => {{ const node = document.querySelector({json.dumps(selector)});"
            " node.scrollIntoView({ block: 'center' }); const b = node.getBoundingClientRect();"
            " const hit = document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2);"
            " if (!node.contains(hit)) return hit?.outerHTML ?? 'nothing'; hit.click(); })()"
        )
        assert missed is None, f"{selector} is covered by {missed}"

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen, or the whole page."""
        image = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))

    def pdf(self) -> bytes:
        """The page on paper."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def problems(self) -> list[str]:
        """Errors of scripts, what the policy blocked, warnings."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"] + str(params["exceptionDetails"].get("exception")))
            if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """The addresses of everything that was asked for."""
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def start_trace(self, *categories: str) -> None:
        """Record what the browser does."""
        self.send("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": categories})

    def end_trace(self) -> list[dict[str, Any]]:
        """The events since the start, of all threads."""
        self.send("Tracing.end")
        while self.events[-1:] == [] or self.events[-1].get("method") != "Tracing.tracingComplete":
            self.events.append(self._read())
        parts = [event["params"]["value"] for event in self.events if event.get("method") == "Tracing.dataCollected"]
        return [event for part in parts for event in part]

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self.send("Browser.close")
        self.process.wait(20)
        os.close(self._to)
        os.close(self._from)
