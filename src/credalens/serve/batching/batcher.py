"""Batcher: gathers jobs of one kind while the worker is busy, up to a number of rows, and hands them to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from credalens.serve.batching.answering import Reply
from credalens.serve.batching.jobs import Job
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.infer_response import InferResponse

Replies = Callable[[Sequence[Job], int], list[Reply]]


@dataclass(frozen=True, eq=False)
class Waiting:
    """A job in the queue, since when, and where its reply goes."""

    job: Job
    since: float
    reply: asyncio.Future[Reply]


class Batcher:
    """One thread that answers batches, and the queue before it. All methods belong to the event loop."""

    def __init__(self, replies: Replies, /, *, rows: int, delay: float, row_axis: int) -> None:
        self._replies, self._rows, self._delay, self._row_axis = replies, rows, delay, row_axis
        self._queue: list[Waiting] = []
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="credalens-serve")

    async def submit(self, job: Job, /) -> InferResponse:
        """The response to a job, after its batch was answered."""
        waiting = Waiting(job, time.monotonic(), asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._start()
        reply = await waiting.reply
        if isinstance(reply, RequestError):
            raise reply
        return reply

    def _start(self) -> None:
        """Start the next batch, unless one runs or there is time to wait for more."""
        self._queue = [
            waiting for waiting in self._queue if not waiting.reply.done()
        ]  # nobody waits for a cancelled one
        if self._busy or not self._queue:
            return
        batch = self._next_batch()
        rest = self._delay - (time.monotonic() - batch[0].since)
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        if rest > 0 and sum(waiting.job.rows for waiting in batch) < self._rows:
            self._timer = loop.call_later(rest, self._start)
            return
        self._busy = True
        taken = {id(waiting) for waiting in batch}
        self._queue = [waiting for waiting in self._queue if id(waiting) not in taken]
        task = loop.run_in_executor(self._thread, self._replies, [x.job for x in batch], len(self._queue))
        task.add_done_callback(lambda done: self._finish(batch, done))

    def _next_batch(self) -> list[Waiting]:
        """The oldest job and those of its kind, in their order, up to the number of rows."""
        kind, rows = self._queue[0].job.kind(self._row_axis), 0
        batch: list[Waiting] = []
        for waiting in self._queue:
            if batch and rows + waiting.job.rows > self._rows:
                break
            if waiting.job.kind(self._row_axis) == kind:
                batch.append(waiting)
                rows += waiting.job.rows
        return batch

    def _finish(self, batch: list[Waiting], done: asyncio.Future[list[Reply]]) -> None:
        self._busy = False
        error = done.exception()
        replies = done.result() if error is None else [RequestError("the batch failed", status=500)] * len(batch)
        for waiting, reply in zip(batch, replies, strict=True):
            if not waiting.reply.done():
                waiting.reply.set_result(reply)
        self._start()
