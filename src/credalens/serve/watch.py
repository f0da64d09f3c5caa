"""Watch: counts requests, batches, uncertainty, decisions and drift, and shows them at ``/metrics`` and ``/``."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import math
import os
from collections import deque
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from credalens.arrays import to_numpy
from credalens.checks.intervals import computed_intervals
from credalens.core.decisions import decide
from credalens.guard import Decisions, DriftAlarm, Guard
from credalens.guard.decisions import DECISION_BY_REASON, REASONS
from credalens.prediction import CredalPrediction
from credalens.serve.metrics import FOLDER, STEP, History, Metrics, observe_all
from credalens.serve.observer import LOG, Answered, BatchDone, Observer
from credalens.theme import STROKES, css_variables

MOST_PENDING: Final = 256
DRIFT_ROWS: Final = 1000  # at a time, evenly spaced among all: more would cost time and tell little
ALPHA: Final = 0.05


@final
class Watch(Observer):
    """Counts requests, batches, scores, decisions and drift, for ``/metrics`` and the page at ``/``.

    An observer of ``app`` by default. Events are counted together once a second, so that requests hardly wait for it.
    """

    def __init__(self, guard: Guard | None = None, *, workers: int = 1) -> None:
        sets = guard is not None and guard.sets is not None
        self.about = {"workers": workers, "guarded": guard is not None, "sets": sets}
        self.metrics, self.history = Metrics(), History()
        self._guard, self._workers = guard, workers
        self.alarm, self._restarts = drift_alarm(guard, streams=workers), Restarts()
        self._pending: deque[Answered | BatchDone] = deque()
        self._lock, self._models = Lock(), set[tuple[str, str]]()

    def answered(self, event: Answered, /) -> None:
        """Keep the event; it is counted here only if bad requests come so fast that no batch is done."""
        self._pending.append(event)
        if len(self._pending) >= 4 * MOST_PENDING:
            self.count()

    def batch_done(self, event: BatchDone, /) -> None:
        """Keep the event; many are counted at once."""
        self._pending.append(event)
        if len(self._pending) >= MOST_PENDING:
            self.count()

    async def run(self) -> None:
        """Count every second, and add a sample to the history every few seconds."""
        for second in itertools.count():
            try:
                await asyncio.to_thread(self.count if second % STEP else self._remember)
            except Exception:
                LOG.exception("counting failed")
            await asyncio.sleep(1)

    def count(self) -> None:
        """Count the events that have been kept."""
        with self._lock:
            events = [self._pending.popleft() for _ in range(len(self._pending))]
            for model in {(event.model, event.version) for event in events}:
                self._models.add(model)
                of_model = [event for event in events if (event.model, event.version) == model]
                if requests := [event for event in of_model if isinstance(event, Answered)]:
                    self._count_requests(requests, model)
                if batches := [event for event in of_model if isinstance(event, BatchDone)]:
                    self._count_batches(batches, model)
            if self._restarts.is_new():
                self.alarm = drift_alarm(self._guard, streams=self._workers)
                for model in self._models:
                    self._show_drift(model)

    def _count_requests(self, events: Sequence[Answered], model: tuple[str, str]) -> None:
        for status in sorted({event.status for event in events}):
            number = sum(event.status == status for event in events)
            self.metrics.requests.labels(*model, str(status)).inc(number)
        observe_all(self.metrics.seconds.labels(*model), np.array([event.seconds for event in events]))

    def _count_batches(self, events: Sequence[BatchDone], model: tuple[str, str]) -> None:
        to = self.metrics
        for histogram, values in (
            (to.batch_seconds, [event.seconds for event in events]),
            (to.batch_rows, [event.rows for event in events]),
            (to.batch_requests, [event.requests for event in events]),
            (to.queue, [event.waiting for event in events]),
            (to.total, _joined([event.prediction.total for event in events])),
            (to.epistemic, _joined([event.prediction.epistemic for event in events])),
            (to.set_size, _set_sizes([event.prediction for event in events])),
        ):
            observe_all(histogram.labels(*model), np.asarray(values))
        if decided := [event.decisions for event in events if event.decisions is not None]:
            self._count_decisions(decided, model)

    def _count_decisions(self, decided: Sequence[Decisions], model: tuple[str, str]) -> None:
        """Count decisions, and update the alarm by their scores: together those that rounding may change by as much."""
        counts = np.bincount(_joined([each.codes for each in decided]))
        for decision, reason, number in zip(DECISION_BY_REASON, REASONS, counts.tolist(), strict=False):
            if number:
                self.metrics.decisions.labels(*model, decision, reason).inc(number)
        if self.alarm is None:
            return
        scores_by_tolerance: dict[float, list[NDArray]] = {}
        for each in decided:
            scores_by_tolerance.setdefault(each.slack.largest, []).append(each.scores)
        for tolerance, parts in scores_by_tolerance.items():
            scores = _joined(parts)[:: math.ceil(sum(map(np.size, parts)) / DRIFT_ROWS)]
            update(self.alarm, scores, tolerance=tolerance, model=model[0], version=model[1])
        self._show_drift(model)

    def _show_drift(self, model: tuple[str, str]) -> None:
        if self.alarm is not None:
            self.metrics.drift.labels(*model).set(self.alarm.log_value)
            self.metrics.drift_bound.labels(*model).set(math.log(self.alarm.bound))
            self.metrics.drift_alarm.labels(*model).set(self.alarm.alarm)

    def _remember(self) -> None:
        self.count()
        counts = self.metrics.sums()
        with self._lock:
            self.history.add(counts)

    def routes(self) -> Sequence[Route]:
        """The page, the numbers that it asks for, the metrics for Prometheus, and a restart of the drift alarm."""
        return [
            Route("/", _page(), methods=["GET"]),
            Route("/recent", self.show_recent),
            Route("/metrics", self.show_metrics),
            Route("/drift/restart", self.restart_drift, methods=["POST"]),
        ]

    async def restart_drift(self, request: Request) -> Response:
        """Restart the alarm in all workers: the evidence is forgotten, and the promise holds for what comes."""
        if self.alarm is None:
            raise HTTPException(404, "no drift is watched: that needs a guard with enough calibration scores.")
        self._restarts.ask()
        await asyncio.to_thread(self.count)
        return JSONResponse({"restarted": True})

    async def show_metrics(self, request: Request) -> Response:
        """The text that Prometheus reads."""

        def text() -> bytes:
            self.count()
            return generate_latest(self.metrics.collected())

        return Response(await asyncio.to_thread(text), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def show_recent(self, request: Request) -> Response:
        """The last minutes, for the page."""
        await asyncio.to_thread(self._remember)
        content = self.about | {"drift": self.alarm is not None, "models": sorted(self._models)}
        return JSONResponse(content | {"samples": list(self.history.samples)}, headers={"Cache-Control": "no-store"})


def _joined(parts: Sequence[Any]) -> NDArray:
    return np.concatenate([to_numpy(part)[0] for part in parts], axis=None)


def _set_sizes(predictions: Sequence[CredalPrediction]) -> NDArray:
    """How many classes remain possible for each row, of all predictions with as many classes at once."""
    sizes = []
    for classes in {p.lower.shape[-1] for p in predictions}:
        alike = [p for p in predictions if p.lower.shape[-1] == classes]
        low, high = (_joined([getattr(p, name) for p in alike]).reshape(-1, classes) for name in ("lower", "upper"))
        intervals = computed_intervals(low, high, of_members=max(p._rounding for p in alike))
        sizes.append(decide(intervals, "maximality").sum(axis=-1))
    return np.concatenate(sizes)


def drift_alarm(guard: Guard | None, /, *, streams: int = 1) -> DriftAlarm | None:
    """An alarm on the scores of a guard, one of ``streams`` that are falsely raised with probability 0.05 in all.

    It compares with the calibration scores only, so that its memory does not grow with the stream. None without a guard,
    and where the guard has too few scores.
    """
    if guard is None:
        return None
    try:
        return DriftAlarm(guard.scores, alpha=ALPHA / streams, method="fixed", tolerance=guard.slack().largest)
    except ValueError as error:
        LOG.warning("drift is not watched: %s", error)
        return None


def update(alarm: DriftAlarm, scores: Any, /, *, tolerance: float | None = None, **fields: Any) -> None:
    """Update the alarm, and log when it is raised."""
    before = alarm.alarm
    alarm.update(scores, tolerance=tolerance)
    if alarm.alarm and not before:
        fields |= {"log_value": alarm.log_value, "log_bound": math.log(alarm.bound), "rows": alarm.alarm_at}
        LOG.warning("drift alarm: scores are higher than those of the calibration data", extra={"fields": fields})


class Restarts:
    """Restarts of the drift alarm: asked for in one process, seen by all workers that share a folder."""

    def __init__(self) -> None:
        folder = os.environ.get(FOLDER)
        self._path = Path(folder, "drift-restarted") if folder else None
        self._asked = 0
        self._seen = self._stamp()

    def ask(self) -> None:
        """Ask all processes for a restart."""
        if self._path is None:
            self._asked += 1
        else:
            self._path.touch()

    def is_new(self) -> bool:
        """Whether a restart was asked for since the last call."""
        before, self._seen = self._seen, self._stamp()
        return before != self._seen

    def _stamp(self) -> int:
        if self._path is None:
            return self._asked
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0


@cache
def _page() -> Response:
    """The page: one file with style and script inside, and a policy that lets it talk to its own server only."""
    page, style, script = (
        (files("credalens.serve") / "assets" / f"page.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "css", "js")
    )
    variables = "".join(f"--{name}: {value};" for name, value in css_variables().items())
    style = f":root {{ {variables} }}\n{style}"
    for name in ("total", "epistemic"):  # lines as in every chart
        dashes = " ".join(f"{length:g}" for length in STROKES[name].dash) or "none"
        style += f".line.{name} {{ stroke: var(--{STROKES[name].role}); stroke-dasharray: {dashes}; }}\n"
    hashed = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    of_style, of_script = (f"'sha256-{digest}'" for digest in hashed)
    headers = {
        "Content-Security-Policy": f"default-src 'none'; style-src {of_style}; script-src {of_script}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return HTMLResponse(page.replace("STYLE", style).replace("SCRIPT", script), headers=headers)
