"""Workers: processes that answer on the same sockets, kept alive by their parent, and ending when it ends."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from threading import Event, Thread
from typing import Any, Final

from credalens.serve.listening import refuse_new
from credalens.serve.server import IDLE, STARTUP_FAILURE, Server

LOG: Final = logging.getLogger("uvicorn.error")
SPAWN: Final = multiprocessing.get_context("spawn")

PATIENCE: Final = 20.0
"""Seconds that a worker may be silent before it is replaced: it may start slowly on a busy machine."""

PAUSE: Final = 5.0
"""Seconds before another try, after a worker that did not start."""

TICK: Final = 0.2

PING, STOP = "ping", "stop"


class Worker:
    """A process, and the pipe by which it hears of its parent. It ends in order when told to, or when the parent is gone."""

    def __init__(self, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.started, self._waits = False, False
        self._pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=work, args=(theirs, *arguments))
        try:
            self.process.start()
        finally:
            theirs.close()  # only the worker has this end: with it, the pipe breaks
        self._heard = time.monotonic()

    def is_well(self) -> bool:
        """Whether it answers: asked anew when it has, it must within `PATIENCE`."""
        try:
            if self._waits and self._pipe.poll():
                self.started = self._pipe.recv() or self.started
                self._waits, self._heard = False, time.monotonic()
            if not self._waits:
                self._pipe.send(PING)
                self._waits = True
        except (OSError, EOFError):
            return False
        return self.process.is_alive() and time.monotonic() - self._heard < PATIENCE

    def has_failed(self) -> bool:
        """Whether it ended by itself, with an error, and was not killed."""
        return (self.process.exitcode or 0) > 0

    def stop(self) -> None:
        """Tell it to end in order."""
        try:
            self._pipe.send(STOP)
        except OSError:
            self._pipe.close()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()
        self._pipe.close()


@dataclass
class Supervisor:
    """Keeps ``number`` workers alive until a signal comes.

    ``work`` is called in a worker with its end of the pipe, for `work_for_parent`, and ``arguments``.
    """

    work: Callable[..., None]
    arguments: tuple[Any, ...]
    number: int
    sockets: Sequence[socket.socket]
    timeout: float
    workers: list[Worker] = field(default_factory=list)
    _signals: int = 0
    _not_before: float = 0.0
    _worked: bool = False

    def run(self) -> None:
        """Serve; the exit code is 0 if all workers ended in order."""
        with self._counting_signals():
            while not self._signals:
                self._replace_lost()
                self._start_missing()
                wait([worker.process.sentinel for worker in self.workers], TICK) if self.workers else time.sleep(TICK)
            self._stop()

    @contextmanager
    def _counting_signals(self) -> Iterator[None]:
        def count(*_: Any) -> None:
            self._signals += 1

        before = {number: signal.signal(number, count) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for worker in self.workers:
                worker.kill()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start_missing(self) -> None:
        while len(self.workers) < self.number and time.monotonic() >= self._not_before:
            try:
                self.workers.append(Worker(self.work, self.arguments))
            except OSError as error:  # no memory, or the process was killed before it had its arguments
                LOG.error("a worker could not be started: %s", error)
                self._not_before = time.monotonic() + PAUSE

    def _replace_lost(self) -> None:
        lost = [worker for worker in self.workers if not worker.is_well()]
        self._worked = self._worked or any(worker.started for worker in self.workers)
        for worker in lost:
            worker.kill()
            self.workers.remove(worker)
            LOG.error("worker [%s] died", worker.process.pid)
            if worker.started:
                continue
            if not self._worked and worker.has_failed():
                LOG.error("workers cannot start: the server ends")
                sys.exit(STARTUP_FAILURE)
            self._not_before = time.monotonic() + PAUSE

    def _stop(self) -> None:
        LOG.info("Stopping %d workers", len(self.workers))
        refuse_new(self.sockets)
        for worker in self.workers:
            worker.stop()
        for sock in self.sockets:
            sock.close()
        deadline = time.monotonic() + self.timeout + IDLE + PATIENCE
        while alive := [x.process.sentinel for x in self.workers if x.process.is_alive()]:
            if time.monotonic() > deadline or self._signals > 1:
                LOG.error("%d workers did not end in order and are killed", len(alive))
                sys.exit(1)
            wait(alive, TICK)


def work_for_parent(
    pipe: Connection, server: Server, sockets: list[socket.socket], /, *, orphaned: Callable[[], None]
) -> None:
    """In a worker: serve until the parent says stop, or is gone; ``orphaned`` is called then, when all is answered."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent gets them too, and ends all workers together
    alone = Event()

    def listen() -> None:
        try:
            while pipe.recv() == PING:
                pipe.send(server.started)
        except (OSError, EOFError):
            alone.set()
            LOG.error("the parent process is gone: worker [%d] ends", os.getpid())
        server.should_exit = True
        time.sleep((server.config.timeout_graceful_shutdown or 0) + IDLE + PATIENCE)
        if alone.is_set():
            orphaned()
        os._exit(1)  # it hangs, and nobody else would end it

    Thread(target=listen, daemon=True).start()
    try:
        server.run(sockets)
    finally:
        if alone.is_set():
            orphaned()
