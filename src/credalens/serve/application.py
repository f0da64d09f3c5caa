"""app(): an ASGI application around any model that makes credal predictions, by the Open Inference Protocol v2."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any, Final

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from credalens import __version__
from credalens.checks.options import check_strings
from credalens.core.summary import MemberSummary
from credalens.guard import Guard
from credalens.prediction import wrap
from credalens.serve.access import Access, check_hosts, refusal
from credalens.serve.batcher import Batcher, Job
from credalens.serve.models import ServedModel, TensorSpec, python_model
from credalens.serve.observer import LOG, Answered, LogLines, Observer, tell
from credalens.serve.places import UNREAD, Place, Room, arrives_slowly, is_read_slowly, most_requests, read_body
from credalens.serve.predictor import BatchPredictor
from credalens.serve.protocol import HEADER_LENGTH, RequestError, read_request
from credalens.serve.responses import SHORT
from credalens.serve.settings import Limits
from credalens.serve.watch import Watch

LARGE: Final = 1 << 16  # bytes of a body that are read in a thread, so that the event loop goes on
GONE: Final = 499  # the client has left: nobody reads this
ABOUT_SERVER: Final[dict[str, dict[str, Any]]] = {
    "/v2": {"name": "credalens", "version": __version__, "extensions": ["binary_tensor_data"]},
    "/v2/health/live": {"live": True},
    "/v2/health/ready": {"ready": True},
}


def app(
    model: Any, guard: Guard | None = None, *, name: str = "model", version: str = "1",
    inputs: Sequence[TensorSpec] = (), logits: bool = False, limits: Limits | None = None,
    observers: Sequence[Observer] | None = None, tokens: Sequence[str] = (), allowed_hosts: Sequence[str] = (),
) -> Starlette:  # fmt: skip
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
    ``allowed_hosts`` are host names, besides loopback names and addresses, that clients may use for the server, and from
    which web pages may call it; without them names are checked only for connections that arrive at a loopback address.

    >>> import numpy as np
    >>> def members(x):
    ...     return np.stack([np.full((len(x), 3), 1 / 3), np.eye(3)[x[:, 0].astype(int)]])
    >>> application = app(members, inputs=[TensorSpec("x", ("FP32",), (-1, 4))])
    """
    tokens = check_strings(tokens, "tokens", "token", example="a-long-secret")
    access = Middleware(Access, tokens=tokens, allowed_hosts=check_hosts(allowed_hosts))
    guard = guard or getattr(model, "guard", None)
    if isinstance(model, ServedModel):
        model = replace(model, guard=guard)
    else:
        model = python_model(model, guard, name=name, version=version, inputs=tuple(inputs), logits=logits)
    observers = (Watch(guard), LogLines()) if observers is None else tuple(observers)
    service = Service(model, limits or Limits(), observers)
    return Starlette(
        routes=[*service.routes(), *(route for observer in observers for route in observer.routes())],
        middleware=[access],
        exception_handlers=dict.fromkeys((RequestError, HTTPException, Exception), _error_response),
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


def warm_up() -> None:
    """Compile the kernels before the first request: predict in each precision, from members and from a summary."""
    for dtype in (np.float32, np.float64):
        probs = np.array([[[0.5, 0.25, 0.25]], [[0.25, 0.25, 0.5]]], dtype)
        wrap(probs).predict_set()
        MemberSummary().update(probs).prediction()


async def _error_response(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestError):
        return refusal(error.status, str(error), {"Retry-After": "1"} if error.status == 503 else None)
    if isinstance(error, HTTPException):
        return refusal(error.status_code, error.detail, error.headers)
    LOG.error("a defect", exc_info=error)
    return refusal(500, "the server failed; its log says why.")


@dataclass
class Arrival:
    """The part of a request to infer that observers are told."""

    since: float = field(default_factory=time.perf_counter)
    id: str | None = None
    rows: int = 0


class Service:
    """Answers the requests of the protocol about one model."""

    def __init__(self, model: ServedModel, limits: Limits, observers: Sequence[Observer]) -> None:
        self.model, self.limits, self.observers = model, limits, observers
        self._requests = Room(most_requests(limits.queue), "the server is busy; try again.")
        self._unread = Room(UNREAD, "other clients have not read their long answers yet; try again.")
        self._reader = ThreadPoolExecutor(1, "credalens-read")  # one thread: JSON unfolds to many times its size
        self._writer = ThreadPoolExecutor(1, "credalens-write")
        self._predictor = predictor = BatchPredictor(model, limits, observers)
        self._batcher, self._batcher_of_long = (
            Batcher(predictor.replies, rows=limits.batch_rows, delay=limits.batch_delay, quick=predictor.is_quick)
            for _ in range(2)
        )

    def routes(self) -> list[Route]:
        """The paths of the protocol."""
        routes = [Route(path, partial(_constant, content)) for path, content in ABOUT_SERVER.items()]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            routes += [Route(path, self.metadata), Route(f"{path}/ready", self.ready)]
            routes.append(Route(f"{path}/infer", self.infer, methods=["POST"]))
        return routes

    async def metadata(self, request: Request) -> Response:
        """Inputs and outputs of the model."""
        self._check_model(request)
        model, predictor = self.model, self._predictor
        content = {
            "name": model.name, "versions": [model.version], "platform": model.platform,
            "parameters": {"default_outputs": predictor.default_outputs},
            "inputs": [spec.metadata() for spec in model.inputs],
            "outputs": [output.metadata(model.float_datatype) for output in predictor.outputs.values()],
        }  # fmt: skip
        return JSONResponse(content)

    async def ready(self, request: Request) -> Response:
        """Whether the model is there."""
        self._check_model(request)
        return JSONResponse({"name": self.model.name, "ready": True})

    async def infer(self, request: Request) -> Response:
        """Predict the rows of a request, and tell the observers."""
        arrival = Arrival()
        try:
            response = await self._infer(request, arrival)
        except Exception as error:
            self._tell(arrival, error.status if isinstance(error, RequestError) else 500, str(error))
            raise
        self._tell(arrival, 200, None)
        return response

    def _check_model(self, request: Request) -> None:
        model, name = self.model, request.path_params["model"]
        version = request.path_params.get("version", model.version)
        if (name, version) != (model.name, model.version):
            there = f"there is {model.name!r}, version {model.version!r}"
            raise RequestError(f"there is no model {name!r:.80}, version {version!r:.80}; {there}.", status=404)

    def _tell(self, arrival: Arrival, status: int, error: str | None) -> None:
        seconds = time.perf_counter() - arrival.since
        event = Answered(self.model.name, self.model.version, status, arrival.id, arrival.rows, seconds, error)
        tell(self.observers, lambda observer: observer.answered, event)

    async def _infer(self, request: Request, arrival: Arrival) -> Response:
        self._check_model(request)
        place = Place(1, arrives_slowly, since=asyncio.get_running_loop().time())
        self._requests.take(place)
        try:
            try:
                async with asyncio.timeout(self.limits.timeout) as place.limit:
                    job = await self._read_job(request, place)
            except TimeoutError:
                raise RequestError("the body did not arrive in time.", status=408) from None
            arrival.id, arrival.rows = job.id, job.rows
            try:
                async with asyncio.timeout(arrival.since + self.limits.timeout - time.perf_counter()):
                    return await self._answer(job)
            except TimeoutError:
                raise RequestError("there is no answer in time.", status=504) from None
        finally:
            self._requests.give_back(place)

    async def _read_job(self, request: Request, place: Place) -> Job:
        try:
            body = await read_body(request, self.limits.body_bytes, place)
        except ClientDisconnect:
            raise RequestError("the client has left.", status=GONE) from None
        header_length = request.headers.get(HEADER_LENGTH)

        def read() -> Job:
            return self._predictor.job_of(read_request(body, header_length))

        return read() if len(body) < LARGE else await asyncio.get_running_loop().run_in_executor(self._reader, read)

    async def _answer(self, job: Job) -> Response:
        batcher = self._batcher_of_long if self._predictor.is_long(job) else self._batcher
        answer = await batcher.submit(job)
        if (most := answer.most_bytes) <= SHORT:
            return answer.written()
        place, left = Place(most, is_read_slowly), Event()
        self._unread.take(place)
        try:
            if answer.is_quick:
                response = answer.written()
            else:  # which takes long; it ends early if nobody waits for it any more
                writing = asyncio.get_running_loop().run_in_executor(self._writer, answer.written, left.is_set)
                response = await writing
        except BaseException:
            left.set()
            self._unread.give_back(place)
            raise
        place.size = response.place.size
        response.place, response.room = place, self._unread
        return response


async def _constant(content: dict[str, Any], request: Request) -> Response:
    return JSONResponse(content)
