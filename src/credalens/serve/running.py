"""Run an application of settings in uvicorn, in one process or in several that share a port."""

from __future__ import annotations

import math
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from typing import Any

from starlette.applications import Starlette

from credalens.serve.app import app
from credalens.serve.content import Content
from credalens.serve.listening import bound_sockets
from credalens.serve.models.member_outputs import member_outputs
from credalens.serve.models.served import ServedModel
from credalens.serve.server import LOG, STARTUP_FAILURE, Server
from credalens.serve.settings import Settings
from credalens.serve.supervisor import Supervisor, work_for_parent
from credalens.serve.watching.collecting import FOLDER
from credalens.serve.watching.log_lines import LogLines, log_config
from credalens.serve.watching.watch import Watch


def make_app(settings: Settings, content: Content | None = None, /) -> Starlette:
    """The application of some settings, whose files are read here unless there is ``content``; raises where one is wrong."""
    content = content or Content.read(settings)
    observers = (Watch(content.guard, workers=settings.workers), LogLines())
    model = _model(settings, content)
    hosts = settings.allowed_hosts
    return app(model, limits=settings.limits, observers=observers, tokens=content.tokens, allowed_hosts=hosts)


def _model(settings: Settings, content: Content) -> ServedModel:
    options: Any = {"logits": settings.logits, "base": settings.base, "version": settings.version}
    if not content.models:
        return member_outputs(content.guard, name=settings.name or "credal", **options)
    from credalens.serve.models.onnx_members import onnx_members

    name = settings.name or "model"
    return onnx_members(content.models, content.guard, output=settings.output, name=name, **options)


def run(settings: Settings, /, *, workers: int = 1, json_logs: bool = False, **options: Any) -> None:
    """Serve until a signal comes, then answer what was taken. ``options`` are uvicorn's: host, port, ssl_keyfile, ..."""
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
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def _serve_together(settings: Settings, content: Content, options: dict[str, Any]) -> None:
    listening = _listening(Server(lambda: None, **options))
    with _shared_counts():
        arguments = settings, content, options, listening
        Supervisor(_work, arguments, settings.workers, listening, options["timeout"]).run()


def _listening(server: Server) -> list[socket.socket]:
    sockets, config = bound_sockets(server.config.host, server.config.port), server.config
    host, port = f"[{config.host}]" if ":" in config.host else config.host, sockets[0].getsockname()[1]
    LOG.info("Uvicorn running on %s://%s:%d (Press CTRL+C to quit)", "https" if config.is_ssl else "http", host, port)
    return sockets


def _work(
    pipe: Connection, settings: Settings, content: Content, options: dict[str, Any], sockets: list[socket.socket]
) -> None:
    """What a worker does, from its beginning to its end."""
    server = Server(partial(make_app, settings, content), **options, signals=())
    work_for_parent(pipe, server, sockets, orphaned=_remove_counts)


@contextmanager
def _shared_counts() -> Iterator[None]:
    """A folder in which workers count, so that each of them can show the sum."""
    with TemporaryDirectory(prefix="credalens-metrics-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


def _remove_counts() -> None:
    """The folder of a parent that can no longer do so."""
    shutil.rmtree(os.environ[FOLDER], ignore_errors=True)
