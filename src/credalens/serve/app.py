"""app(): an ASGI application around any model that makes credal predictions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from credalens.guard import Guard
from credalens.serve.cross_site import RefuseCrossSite, check_hosts
from credalens.serve.limits import Limits
from credalens.serve.models.python_model import python_model
from credalens.serve.models.served import ServedModel, TensorSpec
from credalens.serve.observer import LOG, Observer
from credalens.serve.protocol.errors import RequestError
from credalens.serve.service import Service
from credalens.serve.tokens import BearerTokens, check_tokens
from credalens.serve.warm_up import warm_up
from credalens.serve.watching.log_lines import LogLines
from credalens.serve.watching.watch import Watch


def app(
    model: Any,
    guard: Guard | None = None,
    *,
    name: str = "model",
    version: str = "1",
    inputs: Sequence[TensorSpec] = (),
    logits: bool = False,
    limits: Limits | None = None,
    observers: Sequence[Observer] | None = None,
    tokens: Sequence[str] = (),
    allowed_hosts: Sequence[str] = (),
) -> Starlette:
    """An ASGI application that serves ``model`` by the Open Inference Protocol v2: ``uvicorn my_module:application``.

    ``model`` is one of

    - a ``CredalWrapper`` or a fitted ``CredalClassifier``,
    - a function of arrays, rows first, that returns members' probabilities (members, rows, classes), their logits if
      ``logits`` is true, or a ``CredalPrediction``; it gets a single input by position, several by name,
    - ``member_outputs()``, if requests contain the members' predictions.

    ``guard`` decides about every row; by default it is that of the model. ``inputs`` declares names, datatypes and shapes;
    requests that differ are refused before the model is called. ``limits`` bounds the size and number of requests.
    ``observers`` are called for every request and batch: by default ``Watch``, with ``/metrics`` and a page at ``/``, and
    ``LogLines``. With ``tokens`` every request needs one of them, except for health and for the page, which asks its reader.
    ``allowed_hosts`` are names that requests may call the server by, beside loopback names and addresses, and that pages may
    have which ask it; without them names are checked only for connections that arrive at a loopback address.

    >>> import numpy as np
    >>> def members(x):
    ...     return np.stack([np.full((len(x), 3), 1 / 3), np.eye(3)[x[:, 0].astype(int)]])
    >>> application = app(members, inputs=[TensorSpec("x", ("FP32",), (-1, 4))])
    """
    access = [Middleware(RefuseCrossSite, allowed_hosts=check_hosts(allowed_hosts))]
    access += [Middleware(BearerTokens, tokens=accepted)] if (accepted := check_tokens(tokens)) else []
    guard = guard or getattr(model, "guard", None)
    served = (
        model
        if isinstance(model, ServedModel)
        else python_model(model, guard, name=name, version=version, inputs=tuple(inputs), logits=logits)
    )
    if guard is not None and served.classes not in (None, guard.classes):
        raise ValueError(f"the guard is for {guard.classes} classes; the model has {served.classes}.")
    observers = (Watch(guard), LogLines()) if observers is None else tuple(observers)
    service = Service(served, guard, limits or Limits(), observers)
    return Starlette(
        routes=[*service.routes(), *(route for observer in observers for route in observer.routes())],
        middleware=access,
        exception_handlers={RequestError: _request_error, HTTPException: _http_error, Exception: _defect},
        lifespan=partial(_lifespan, observers=observers),
    )


@asynccontextmanager
async def _lifespan(app: Starlette, observers: Sequence[Observer]) -> AsyncIterator[None]:
    await asyncio.to_thread(warm_up)
    tasks = [asyncio.create_task(observer.run()) for observer in observers]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _request_error(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, RequestError) else 500
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"error": str(error)}, status_code=status, headers=headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    return JSONResponse({"error": error.detail}, status_code=error.status_code, headers=error.headers)


async def _defect(request: Request, error: Exception) -> Response:
    LOG.error("a defect", exc_info=error)
    return JSONResponse({"error": "the server failed; its log says why."}, status_code=500)
