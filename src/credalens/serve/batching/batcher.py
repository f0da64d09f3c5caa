"""Batcher: gathers jobs of one kind while the worker is busy, up to a number of rows, and hands them to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from credalens.serve.batching.answering import Reply, Turns
from credalens.serve.batching.jobs import Job
from credalens.serve.observer import LOG
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.infer_response import Answer

Replies = Callable[[Sequence[Job], int, Callable[[], bool]], Turns]


@dataclass(frozen=True, eq=False)
class Waiting:
    """A job in the queue, its kind, since when it waits, and where its reply goes."""

    job: Job
    kind: Hashable
    since: float
    reply: asyncio.Future[Reply]


@dataclass(frozen=True, eq=False)
class Begun:
    """A batch that is worked on in turns."""

    batch: list[Waiting]
    turns: Turns


class Batcher:
    """One thread that answers batches, and the queue before it. All methods belong to the event loop.

    A large batch takes several turns. Between two of them another batch has one, so that small requests do not wait for all
    of a large one; of large ones the oldest goes on first.

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
        self._begun: list[Begun] = []
        self._busy = self._went_on = False
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="credalens-serve")

    async def submit(self, job: Job, /) -> Answer:
        """The answer to a job, after its batch was answered."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._queue.append(Waiting(job, job.kind(self._row_axis), time.monotonic(), reply))
        asyncio.get_running_loop().call_soon(self._start)  # after all requests that have arrived by now
        if isinstance(answer := await reply, RequestError):
            raise answer
        return answer

    def _start(self) -> None:
        """Give the next turn, unless one is taken: to a new batch and to what has begun alternately."""
        if self._busy:
            return
        batch = self._ready_batch()
        if self._begun and not (batch and self._went_on):
            self._went_on = True
            self._turn(self._begun[0])
        elif batch:
            self._went_on = False
            self._begin(batch)

    def _ready_batch(self) -> list[Waiting]:
        """The next batch; none where nobody waits, or where there is time to wait for more."""
        self._queue = [waiting for waiting in self._queue if not waiting.reply.done()]  # who gave up waits no more
        if not self._queue:
            return []
        batch = self._next_batch()
        if self._timer is not None:
            self._timer.cancel()
        rest = self._delay - (time.monotonic() - batch[0].since)
        if rest > 0 and sum(waiting.job.rows for waiting in batch) < self._rows:
            self._timer = asyncio.get_running_loop().call_later(rest, self._start)
            return []
        return batch

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

    def _begin(self, batch: list[Waiting]) -> None:
        self._queue = [waiting for waiting in self._queue if waiting not in batch]
        jobs = [waiting.job for waiting in batch]

        def given_up() -> bool:
            return all(waiting.reply.done() for waiting in batch)

        begun = Begun(batch, self._replies(jobs, len(self._queue), given_up))
        self._begun.append(begun)
        self._turn(begun, quick=self._quick(jobs))

    def _turn(self, begun: Begun, *, quick: bool = False) -> None:
        self._busy = True
        loop = asyncio.get_running_loop()
        if quick:
            task: asyncio.Future[list[Reply] | None] = loop.create_future()
            _settle(task, begun.turns)
        else:
            task = loop.run_in_executor(self._thread, _take_turn, begun.turns)
        task.add_done_callback(lambda done: self._finish(begun, done))

    def _finish(self, begun: Begun, done: asyncio.Future[list[Reply] | None]) -> None:
        self._busy = False
        if (replies := _replies_of(done, len(begun.batch))) is not None:
            self._begun.remove(begun)
            for waiting, reply in zip(begun.batch, replies, strict=True):
                if not waiting.reply.done():
                    waiting.reply.set_result(reply)
        self._start()


def _take_turn(turns: Turns) -> list[Reply] | None:
    """The replies; None where more turns are needed."""
    try:
        next(turns)
    except StopIteration as end:
        replies: list[Reply] = end.value
        return replies
    return None


def _settle(task: asyncio.Future[list[Reply] | None], turns: Turns) -> None:
    try:
        task.set_result(_take_turn(turns))
    except Exception as error:
        task.set_exception(error)


def _replies_of(done: asyncio.Future[list[Reply] | None], count: int) -> list[Reply] | None:
    if (error := done.exception()) is None:
        return done.result()
    LOG.error("a batch failed", exc_info=error)
    return [RequestError("the server failed; its log says why.", status=500) for _ in range(count)]
