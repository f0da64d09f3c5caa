"""Watch: counts requests, batches, uncertainty, decisions and drift, and shows them at ``/metrics`` and ``/``."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from credalens.arrays import to_numpy
from credalens.checks.intervals import computed_intervals
from credalens.core.decisions import decide
from credalens.guard import Decisions, DriftAlarm, Guard
from credalens.guard.decisions import DECISION_BY_REASON, REASONS
from credalens.prediction import CredalPrediction
from credalens.serve.observer import LOG, Answered, BatchDone, Observer
from credalens.serve.watching.collecting import collected, sums
from credalens.serve.watching.drift import drift_alarm, tolerance_of, update
from credalens.serve.watching.history import STEP, History
from credalens.serve.watching.instruments import Instruments, observe_all
from credalens.serve.watching.page import page_response
from credalens.serve.watching.restarts import Restarts

MOST_PENDING: Final = 256
DRIFT_ROWS: Final = 1000  # at a time, evenly spaced among all: more would cost time and tell little


@final
class Watch(Observer):
    """Counts requests, batches, scores, decisions and drift, for ``/metrics`` and the page at ``/``.

    An observer of ``app`` by default. Events are counted together once a second, so that requests hardly wait for it.
    """

    def __init__(self, guard: Guard | None = None, *, workers: int = 1) -> None:
        self.about = {
            "workers": workers,
            "guarded": guard is not None,
            "sets": guard is not None and guard.sets is not None,
        }
        self.instruments, self.history = Instruments(), History()
        self._new_alarm = partial(drift_alarm, guard, streams=workers)
        self.alarm, self._restarts = self._new_alarm(), Restarts()
        self._pending: deque[Answered | BatchDone] = deque()
        self._lock, self._models = Lock(), set[tuple[str, str]]()

    def answered(self, event: Answered, /) -> None:
        """Keep it; counted here only where bad requests come so fast that no batch is done."""
        self._pending.append(event)
        if len(self._pending) >= 4 * MOST_PENDING:
            self.count()

    def batch_done(self, event: BatchDone, /) -> None:
        """Keep it; many are counted at once."""
        self._pending.append(event)
        if len(self._pending) >= MOST_PENDING:
            self.count()

    async def run(self) -> None:
        """Count every second, and remember now and then what was counted."""
        for second in itertools.count():
            try:
                await asyncio.to_thread(self.count if second % STEP else self._remember)
            except Exception:
                LOG.exception("counting failed")
            await asyncio.sleep(1)

    def count(self) -> None:
        """Count what has been kept."""
        with self._lock:
            events = [self._pending.popleft() for _ in range(len(self._pending))]
            for model in {(event.model, event.version) for event in events}:
                self._models.add(model)
                of_model = [event for event in events if (event.model, event.version) == model]
                self._count_requests([event for event in of_model if isinstance(event, Answered)], model)
                self._count_batches([event for event in of_model if isinstance(event, BatchDone)], model)
            if self._restarts.is_new():
                self._restart_alarm()

    def _count_requests(self, events: Sequence[Answered], model: tuple[str, str]) -> None:
        if not events:
            return
        for status in sorted({event.status for event in events}):
            number = sum(event.status == status for event in events)
            self.instruments.requests.labels(*model, str(status)).inc(number)
        observe_all(self.instruments.seconds.labels(*model), np.array([event.seconds for event in events]))

    def _count_batches(self, events: Sequence[BatchDone], model: tuple[str, str]) -> None:
        if not events:
            return
        to = self.instruments
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
        self._count_decisions([event.decisions for event in events if event.decisions is not None], model)

    def _count_decisions(self, decided: Sequence[Decisions], model: tuple[str, str]) -> None:
        if not decided:
            return
        counts = np.bincount(_joined([each.codes for each in decided]))
        for decision, reason, number in zip(DECISION_BY_REASON, REASONS, counts.tolist(), strict=False):
            if number:
                self.instruments.decisions.labels(*model, decision, reason).inc(number)
        if self.alarm is not None:
            self._watch_drift(self.alarm, decided, model)
            self._show_drift(self.alarm, model)

    def _watch_drift(self, alarm: DriftAlarm, decided: Sequence[Decisions], model: tuple[str, str]) -> None:
        """Show the alarm their scores, those that rounding may change by as much together."""
        scores_by_tolerance: dict[float, list[NDArray]] = {}
        for each in decided:
            scores_by_tolerance.setdefault(tolerance_of(each), []).append(each.scores)
        for tolerance, parts in scores_by_tolerance.items():
            scores = _joined(parts)[:: math.ceil(sum(map(np.size, parts)) / DRIFT_ROWS)]
            update(alarm, scores, tolerance=tolerance, model=model[0], version=model[1])

    def _show_drift(self, alarm: DriftAlarm, model: tuple[str, str]) -> None:
        self.instruments.drift.labels(*model).set(alarm.log_value)
        self.instruments.drift_bound.labels(*model).set(math.log(alarm.bound))
        self.instruments.drift_alarm.labels(*model).set(alarm.alarm)

    def _restart_alarm(self) -> None:
        if (alarm := self._new_alarm()) is not None:
            for model in self._models:
                self._show_drift(alarm, model)
        self.alarm = alarm

    def _remember(self) -> None:
        self.count()
        counts = sums(self.instruments.registry)
        with self._lock:
            self.history.add(counts)

    def routes(self) -> Sequence[Route]:
        """For Prometheus, for a browser, the numbers that its page asks for, and a restart of the drift alarm."""
        return [
            Route("/", page_response),
            Route("/recent", self.recent),
            Route("/metrics", self.metrics),
            Route("/drift/restart", self.restart_drift, methods=["POST"]),
        ]

    async def restart_drift(self, request: Request) -> Response:
        """Start the alarm again, in all workers: what came before is forgotten, and the promise holds for what comes."""
        if self.alarm is None:
            raise HTTPException(404, "no drift is watched: that needs a guard with enough calibration scores.")
        self._restarts.ask()
        await asyncio.to_thread(self.count)
        return JSONResponse({"restarted": True})

    async def metrics(self, request: Request) -> Response:
        """The text that Prometheus reads."""
        text = await asyncio.to_thread(self._text)
        return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _text(self) -> bytes:
        self.count()
        return generate_latest(collected(self.instruments.registry))

    async def recent(self, request: Request) -> Response:
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
