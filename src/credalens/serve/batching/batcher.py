"""Batcher: gathers jobs of one kind while the worker is busy, up to a number of rows, and hands them to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from credalens.serve.batching.answering import Reply
from credalens.serve.batching.jobs import Job
from credalens.serve.observer import LOG
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.infer_response import InferResponse

Replies = Callable[[Sequence[Job], int, Callable[[], bool]], list[Reply]]


@dataclass(frozen=True, eq=False)
class Waiting:
    """A job in the queue, its kind, since when it waits, and where its reply goes."""

    job: Job
    kind: Hashable
    since: float
    reply: asyncio.Future[Reply]


class Batcher:
    """One thread that answers batches, and the queue before it. All methods belong to the event loop.

    Batches that are ``quick`` are answered in the event loop: that takes less time than to hand them to the thread, which
    has to wait for a processor where others are at work too.
    """

    def __init__(
        self,
        replies: Replies,
        /,
        *,
        rows: int,
        delay: float,
        row_axis: int,
        quick: Callable[[Sequence[Job]], bool] = lambda jobs: False,
    ) -> None:
        self._replies, self._rows, self._delay, self._row_axis = replies, rows, delay, row_axis
        self._quick = quick
        self._queue: list[Waiting] = []
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="credalens-serve")

    async def submit(self, job: Job, /) -> InferResponse:
        """The response to a job, after its batch was answered."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._queue.append(Waiting(job, job.kind(self._row_axis), time.monotonic(), reply))
        asyncio.get_running_loop().call_soon(self._start)  # after all requests that have arrived by now
        if isinstance(answer := await reply, RequestError):
            raise answer
        return answer

    def _start(self) -> None:
        """Start the next batch, unless one runs or there is time to wait for more."""
        self._queue = [waiting for waiting in self._queue if not waiting.reply.done()]  # who gave up waits no more
        if self._busy or not self._queue:
            return
        batch = self._next_batch()
        if self._timer is not None:
            self._timer.cancel()
        rest = self._delay - (time.monotonic() - batch[0].since)
        if rest > 0 and sum(waiting.job.rows for waiting in batch) < self._rows:
            self._timer = asyncio.get_running_loop().call_later(rest, self._start)
        else:
            self._run(batch)

    def _next_batch(self) -> list[Waiting]:
        """The oldest job and those of its kind, in their order, up to the number of rows."""
        oldest, *others = self._queue
        batch, rows = [oldest], oldest.job.rows
        for waiting in (other for other in others if other.kind == oldest.kind):
            rows += waiting.job.rows
            if rows > self._rows:
                break
            batch.append(waiting)
        return batch

    def _run(self, batch: list[Waiting]) -> None:
        self._busy = True
        self._queue = [waiting for waiting in self._queue if waiting not in batch]
        jobs = [waiting.job for waiting in batch]
        loop = asyncio.get_running_loop()

        def given_up() -> bool:
            return all(waiting.reply.done() for waiting in batch)

        if self._quick(jobs):
            task: asyncio.Future[list[Reply]] = loop.create_future()
            _settle(task, lambda: self._replies(jobs, len(self._queue), given_up))
        else:
            task = loop.run_in_executor(self._thread, self._replies, jobs, len(self._queue), given_up)
        task.add_done_callback(lambda done: self._finish(batch, done))

    def _finish(self, batch: list[Waiting], done: asyncio.Future[list[Reply]]) -> None:
        self._busy = False
        for waiting, reply in zip(batch, _replies_of(done, len(batch)), strict=True):
            if not waiting.reply.done():
                waiting.reply.set_result(reply)
        self._start()


def _settle(task: asyncio.Future[list[Reply]], work: Callable[[], list[Reply]]) -> None:
    try:
        task.set_result(work())
    except Exception as error:
        task.set_exception(error)


def _replies_of(done: asyncio.Future[list[Reply]], count: int) -> list[Reply]:
    if (error := done.exception()) is None:
        return done.result()
    LOG.error("a batch failed", exc_info=error)
    return [RequestError("the server failed; its log says why.", status=500) for _ in range(count)]
