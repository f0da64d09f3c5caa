"""Run an application of settings in uvicorn, in one process or in several that share a port."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette

from credalens.guard import Guard
from credalens.serve.app import app
from credalens.serve.malformed_http import JsonErrors
from credalens.serve.models.member_outputs import member_outputs
from credalens.serve.models.served import ServedModel
from credalens.serve.settings import Settings
from credalens.serve.tokens import read_tokens
from credalens.serve.watching.collecting import FOLDER
from credalens.serve.watching.log_lines import LogLines, log_config
from credalens.serve.watching.watch import Watch

VARIABLE: Final = "CREDALENS_SERVE"
"""The environment variable by which a worker gets its settings."""

PATIENCE: Final = 20
"""Seconds that a worker may be silent before it is replaced: it may start slowly on a busy machine. One that dies while it is
asked is replaced after as long."""


def make_app(settings: Settings, /) -> Starlette:
    """The application of some settings; raises where one of its files is wrong."""
    guard = None if settings.guard is None else Guard.load(settings.guard)
    tokens = () if settings.token_file is None else read_tokens(settings.token_file)
    observers = (Watch(guard, workers=settings.workers), LogLines())
    model, hosts = _model(settings, guard), settings.allowed_hosts
    return app(model, limits=settings.limits, observers=observers, tokens=tokens, allowed_hosts=hosts)


def _model(settings: Settings, guard: Guard | None) -> ServedModel:
    options = {"logits": settings.logits, "base": settings.base, "version": settings.version}
    if not settings.models:
        return member_outputs(guard, name=settings.name or "credal", **options)  # type: ignore[arg-type]
    from credalens.serve.models.onnx_members import onnx_members

    name = settings.name or "model"
    return onnx_members(settings.models, guard, output=settings.output, name=name, **options)  # type: ignore[arg-type]


def app_of_environment() -> Starlette:
    """The application of a worker."""
    return make_app(Settings.from_json(os.environ[VARIABLE]))


def run(settings: Settings, /, *, workers: int = 1, json_logs: bool = False, **options: Any) -> None:
    """Serve until a signal comes, then answer what was taken. ``options`` are uvicorn's: host, port, ssl_keyfile, ..."""
    settings = replace(settings, workers=workers)
    application = make_app(settings)  # also with several workers: what is wrong is said here, once
    options |= {
        "http": JsonErrors,
        "access_log": False,
        "lifespan": "on",
        "server_header": False,
        "timeout_graceful_shutdown": math.ceil(settings.limits.timeout),
        "timeout_worker_healthcheck": PATIENCE,
    }
    options |= {"log_config": log_config()} if json_logs else {}
    if workers == 1:
        uvicorn.run(application, **options)
        return
    del application
    os.environ[VARIABLE] = settings.to_json()
    with _shared_counts():
        uvicorn.run(f"{__name__}:app_of_environment", factory=True, workers=workers, **options)


@contextmanager
def _shared_counts() -> Iterator[None]:
    """A folder in which workers count, so that each of them can show the sum."""
    with TemporaryDirectory(prefix="credalens-metrics-") as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]
