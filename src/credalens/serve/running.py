"""Run the application of settings: in uvicorn, in one process or in workers that share a port, or on Ray Serve.

Workers of uvicorn are kept alive, listen on the same sockets, and end when their parent ends. Replicas on Ray run on the
machines of a cluster, and are started again if one is lost.
"""

from __future__ import annotations

import importlib
import logging
import math
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Final

from starlette.applications import Starlette

from credalens.checks.options import needing
from credalens.engines.cluster import LOOPBACK, is_ours, ray_cluster
from credalens.serve.application import app
from credalens.serve.metrics import FOLDER
from credalens.serve.models import member_outputs
from credalens.serve.observer import LogLines, log_config
from credalens.serve.server import IDLE, SIGNALS, STARTUP_FAILURE, Server, bound_sockets, handling, refuse_new
from credalens.serve.settings import Content, Settings
from credalens.serve.watch import Watch

LOG: Final = logging.getLogger("uvicorn.error")
SPAWN: Final = multiprocessing.get_context("spawn")

PATIENCE: Final = 20.0  # seconds that a worker may be silent before it is replaced: it may start slowly
PAUSE: Final = 5.0  # seconds before another try, after a worker that did not start
TICK: Final = 0.2
PING, STOP = "ping", "stop"
NAME: Final = "credalens"  # of the application on Ray
STORE: Final = 256 << 20  # bytes of a Ray of our own, for bodies on their way


def make_app(settings: Settings, content: Content | None = None, /) -> Starlette:
    """The application of settings, whose files are read unless there is ``content``; raises if one of them is wrong."""
    content = content or Content.read(settings)
    options: Any = {"logits": settings.logits, "base": settings.base, "version": settings.version}
    options |= {"recalibration": content.recalibration}
    if content.models:
        from credalens.serve.onnx_members import onnx_members

        options |= {"output": settings.output, "name": settings.name or "model"}
        model = onnx_members(content.models, content.guard, **options)
    else:
        model = member_outputs(content.guard, name=settings.name or "credal", **options)
    observers, hosts = (Watch(content.guard, workers=settings.workers), LogLines()), settings.allowed_hosts
    return app(model, limits=settings.limits, observers=observers, tokens=content.tokens, allowed_hosts=hosts)


def run(settings: Settings, /, *, workers: int = 1, json_logs: bool = False, **options: Any) -> None:
    """Serve until a signal, then answer what was accepted. ``options`` are uvicorn's: host, port, ssl_keyfile, ..."""
    settings = replace(settings, workers=workers)
    options |= {"timeout": math.ceil(settings.limits.timeout)} | ({"log_config": log_config()} if json_logs else {})
    content = Content.read(settings)
    application = make_app(settings, content)  # also with several workers: what is wrong is said here, once
    if workers == 1:
        del content
        _serve_alone(Server(lambda: application, **options))
    else:
        del application
        _serve_together(settings, content, options)


def _serve_alone(server: Server) -> None:
    server.run(_listening(server))


def _serve_together(settings: Settings, content: Content, options: dict[str, Any]) -> None:
    sockets = _listening(Server(lambda: None, **options))
    with TemporaryDirectory(prefix="credalens-metrics-") as folder:  # workers count in it: each can show the sum
        os.environ[FOLDER] = folder
        try:
            arguments = settings, content, options, sockets
            Supervisor(_work, arguments, settings.workers, sockets, options["timeout"]).run()
        finally:
            del os.environ[FOLDER]


def _listening(server: Server) -> list[socket.socket]:
    sockets, config = bound_sockets(server.config.host, server.config.port), server.config
    host, port = f"[{config.host}]" if ":" in config.host else config.host, sockets[0].getsockname()[1]
    LOG.info("Uvicorn running on %s://%s:%d (Press CTRL+C to quit)", "https" if config.is_ssl else "http", host, port)
    return sockets


def _work(
    pipe: Connection, settings: Settings, content: Content, options: dict[str, Any], sockets: list[socket.socket]
) -> None:
    """Serve in a worker until the parent says stop or is gone, and answer all; then remove what a lost parent left."""
    server = Server(partial(make_app, settings, content), **options, signals=())
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the parent gets them too, and ends all workers together
    alone = Event()

    def remove_counts() -> None:
        if alone.is_set():
            shutil.rmtree(os.environ[FOLDER], ignore_errors=True)

    def listen() -> None:
        try:
            while pipe.recv() == PING:
                pipe.send(server.started)
        except (OSError, EOFError):
            alone.set()
            LOG.error("the parent process is gone: worker [%d] ends", os.getpid())
        server.should_exit = True
        time.sleep((server.config.timeout_graceful_shutdown or 0) + IDLE + PATIENCE)
        remove_counts()
        os._exit(1)  # it hangs, and nobody else would end it

    Thread(target=listen, daemon=True).start()
    try:
        server.run(sockets)
    finally:
        remove_counts()


class Worker:
    """A process, and the pipe to its parent. It ends in order when told to, or when the parent is gone."""

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
        """Whether it answers pings, each within `PATIENCE`."""
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

    ``work`` is called in a worker with its end of the pipe, on which it answers `PING` until another word comes, and
    ``arguments``.
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

        def count(*_: Any) -> None:
            self._signals += 1

        with handling(SIGNALS, count):
            try:
                while not self._signals:
                    self._replace_lost()
                    self._start_missing()
                    lost = [worker.process.sentinel for worker in self.workers]
                    wait(lost, TICK) if lost else time.sleep(TICK)
                self._stop()
            finally:
                for worker in self.workers:
                    worker.kill()

    def _replace_lost(self) -> None:
        lost = [worker for worker in self.workers if not worker.is_well()]
        self._worked = self._worked or any(worker.started for worker in self.workers)
        for worker in lost:
            worker.kill()
            self.workers.remove(worker)
            LOG.error("worker [%s] died", worker.process.pid)
            if worker.started:
                continue
            if not self._worked and (worker.process.exitcode or 0) > 0:  # by itself, with an error, and was not killed
                LOG.error("workers cannot start: the server ends")
                sys.exit(STARTUP_FAILURE)
            self._not_before = time.monotonic() + PAUSE

    def _start_missing(self) -> None:
        while len(self.workers) < self.number and time.monotonic() >= self._not_before:
            try:
                self.workers.append(Worker(self.work, self.arguments))
            except OSError as error:  # no memory, or the process was killed before it had its arguments
                LOG.error("a worker could not be started: %s", error)
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


def run_on_ray(
    settings: Settings, /, *, address: str | None = None, replicas: int = 1, host: str = LOOPBACK, port: int = 8000,
    **tls: str | os.PathLike[str] | None,
) -> None:  # fmt: skip
    """Serve until a signal comes, then answer what was taken. ``tls`` are the paths ssl_certfile and ssl_keyfile.

    ``address`` is that of a running cluster; without one, and without $RAY_ADDRESS, a Ray is started on this machine. Every
    machine of a cluster listens on the port, and must reach the paths of the settings.
    """
    content = Content.read(settings)
    make_app(settings, content)  # what is wrong is said here, once
    names = {"part": "credalens serve --engine ray", "extra": "ray,serve"}
    with needing("ray", **names), needing("fastapi", **names):
        serve: Any = importlib.import_module("ray.serve")
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    private, stopped = is_ours(address), Event()
    with ray_cluster(address, workers=replicas, object_store=STORE), _reserved(host, port) as port:
        paths = {name: os.fspath(path) for name, path in tls.items() if path is not None}
        serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port, **paths})
        try:
            deployment = _deployment(serve, settings, content.for_cluster(), replicas, private)
            serve.run(deployment, name=NAME, route_prefix="/")
            for number in SIGNALS:
                signal.signal(number, lambda *_: stopped.set())
            where = f"http{'s' if paths else ''}://{host}:{port}"
            sys.stderr.write(f"running on {where} (press CTRL+C to quit)\n")
            stopped.wait()
        finally:
            serve.shutdown() if private else serve.delete(NAME)  # a cluster may serve others too


def _deployment(serve: Any, settings: Settings, content: Content, replicas: int, private: bool) -> Any:
    def build() -> Starlette:
        if private:  # no other machines: a replica need not offer itself to them, behind Ray's token, on all networks
            replica: Any = importlib.import_module("ray.serve._private.replica")
            add_port = replica.add_port_to_grpc_server
            replica.add_port_to_grpc_server = lambda server, address: add_port(server, f"{LOOPBACK}:0")
        return make_app(settings, content)

    queue, timeout = settings.limits.queue, settings.limits.timeout
    limits = {"max_ongoing_requests": queue, "max_queued_requests": queue, "graceful_shutdown_timeout_s": timeout}
    return serve.deployment(serve.ingress(build)(), name=NAME, num_replicas=replicas, **limits).bind()


@contextmanager
def _reserved(host: str, port: int) -> Iterator[int]:
    """The port; for 0 a free one that is reserved until Ray listens on it, since Ray must be told which."""
    with socket.socket() as holder:
        if not port:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((host, 0))
        yield port or holder.getsockname()[1]
