"""Batcher: a queue of jobs, which are requests that were read and checked, and a thread that answers them in batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from numpy.typing import NDArray

from credalens.serve.observer import LOG
from credalens.serve.protocol import RequestError, WantedOutput
from credalens.serve.responses import Answer

Reply = Answer | RequestError
Turns = Generator[None, None, list[Reply]]
"""The work on a batch, in turns: the generator stops between parts, and returns a reply for each job."""


@dataclass(frozen=True, eq=False)
class Job:
    """The tensors of one request, how many rows they have, and the outputs that it wants."""

    id: str | None
    inputs: dict[str, NDArray]
    rows: int
    outputs: tuple[WantedOutput, ...]
    row_axis: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs that have to be computed."""
        return tuple(output.name for output in self.outputs)

    def kind(self) -> Hashable:
        """The key that jobs of one batch share: the outputs, and everything about the tensors but the number of rows."""
        axis = self.row_axis
        tensors = ((name, x.dtype.str, x.shape[:axis], x.shape[axis + 1 :]) for name, x in self.inputs.items())
        return frozenset(self.names), frozenset(tensors)


@dataclass(frozen=True, eq=False)
class QueuedJob:
    """A job in the queue, its kind, since when it waits, and where its reply goes."""

    job: Job
    kind: Hashable
    since: float
    reply: asyncio.Future[Reply]


@dataclass(frozen=True, eq=False)
class Batch:
    """Jobs that are answered together, in turns."""

    jobs: list[QueuedJob]
    turns: Turns

    def take_turn(self) -> list[Reply] | None:
        """Take a turn; returns the replies, or None if more turns are needed."""
        try:
            next(self.turns)
        except StopIteration as end:
            replies: list[Reply] = end.value
            return replies
        except BaseException as error:  # whatever a model raises: the next batch waits for this one to end
            LOG.error("a batch failed", exc_info=error)
            return [RequestError("the server failed; its log says why.", status=500) for _ in self.jobs]
        return None


class Batcher:
    """One thread that answers batches, and the queue before it. All methods belong to the event loop.

    ``replies`` makes the turns of a batch from its jobs, the number of jobs in the queue, and a function that says whether
    nobody waits for its replies any more.

    A large batch takes several turns. Between two of them another batch has one, so that small requests do not wait for all
    of a large one; of large ones the oldest goes on first.

    Batches that are ``quick`` are answered in the event loop: that takes less time than to hand them to the thread, which
    has to wait for a processor where others are at work too.
    """

    def __init__(
        self, replies: Callable[[Sequence[Job], int, Callable[[], bool]], Turns], /, *, rows: int, delay: float,
        quick: Callable[[Sequence[Job]], bool] = lambda jobs: False,
    ) -> None:  # fmt: skip
        self._replies, self._rows, self._delay, self._quick = replies, rows, delay, quick
        self._queue: list[QueuedJob] = []
        self._running: list[Batch] = []
        self._busy = self._went_on = False
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="credalens-serve")

    async def submit(self, job: Job, /) -> Answer:
        """Put a job into the queue, and wait for its answer."""
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._queue.append(QueuedJob(job, job.kind(), time.monotonic(), reply))
        asyncio.get_running_loop().call_soon(self._start)  # after all requests that have arrived by now
        if isinstance(answer := await reply, RequestError):
            raise answer
        return answer

    def _start(self) -> None:
        """Give the next turn, unless one is taken: alternately to a new batch and to the oldest that is running."""
        if self._busy:
            return
        jobs = self._ready_jobs()
        if self._running and not (jobs and self._went_on):
            self._went_on = True
            self._give_turn(self._running[0])
        elif jobs:
            self._went_on = False
            self._begin(jobs)

    def _ready_jobs(self) -> list[QueuedJob]:
        """The oldest job and those of its kind, up to the number of rows; none if there is time to wait for more."""
        self._queue = [queued for queued in self._queue if not queued.reply.done()]  # who gave up waits no more
        if not self._queue:
            return []
        oldest, *others = self._queue
        jobs, rows = [oldest], oldest.job.rows
        for queued in others:
            if queued.kind == oldest.kind:
                if rows + queued.job.rows > self._rows:
                    break
                rows += queued.job.rows
                jobs.append(queued)
        if self._timer is not None:
            self._timer.cancel()
        rest = self._delay - (time.monotonic() - oldest.since)
        if rest > 0 and rows < self._rows:
            self._timer = asyncio.get_running_loop().call_later(rest, self._start)
            return []
        return jobs

    def _begin(self, jobs: list[QueuedJob]) -> None:
        self._queue = [queued for queued in self._queue if queued not in jobs]
        requests = [queued.job for queued in jobs]
        turns = self._replies(requests, len(self._queue), lambda: all(queued.reply.done() for queued in jobs))
        self._running.append(running := Batch(jobs, turns))
        self._give_turn(running, quick=self._quick(requests))

    def _give_turn(self, running: Batch, *, quick: bool = False) -> None:
        self._busy = True
        loop = asyncio.get_running_loop()
        if quick:
            loop.call_soon(self._finish, running, running.take_turn())
        else:
            turn = loop.run_in_executor(self._thread, running.take_turn)
            turn.add_done_callback(lambda done: self._finish(running, done.result()))

    def _finish(self, running: Batch, replies: list[Reply] | None) -> None:
        self._busy = False
        if replies is not None:
            self._running.remove(running)
            for queued, reply in zip(running.jobs, replies, strict=True):
                if not queued.reply.done():
                    queued.reply.set_result(reply)
        self._start()
