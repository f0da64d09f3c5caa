"""Service: one model behind the protocol's routes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from credalens import __version__
from credalens.guard import Guard
from credalens.serve.batching.answering import Answering
from credalens.serve.batching.batcher import Batcher
from credalens.serve.batching.jobs import Job
from credalens.serve.body import read_body
from credalens.serve.limits import Limits
from credalens.serve.models.served import ServedModel
from credalens.serve.observer import Answered, Observer, tell
from credalens.serve.outputs import available_outputs, check_output, default_outputs
from credalens.serve.places import SHORT, Place, Places, Sending, Unread, most_requests
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.infer_request import WantedOutput, read_request
from credalens.serve.protocol.infer_response import HEADER_LENGTH, Answer, InferResponse

LARGE: Final = 1 << 16  # bytes of a body that are read in a thread, so that the event loop goes on
NUMBER: Final = 26  # bytes that a number and what is between two of them take at most as text
GONE: Final = 499  # the client has left: nobody reads this
SERVER: Final = {"name": "credalens", "version": __version__, "extensions": ["binary_tensor_data"]}


@dataclass
class Arrival:
    """What is known of a request to infer, for the observers."""

    since: float = field(default_factory=time.perf_counter)
    id: str | None = None
    rows: int = 0


class Service:
    """One model behind the protocol."""

    def __init__(
        self, model: ServedModel, guard: Guard | None, limits: Limits, observers: tuple[Observer, ...]
    ) -> None:
        self.model, self.guard, self.limits, self.observers = model, guard, limits, observers
        self.outputs = available_outputs(guard, has_members=model.has_members)
        self._places = Places(most_requests(limits.queue))
        self._unread = Unread()
        self._reader = ThreadPoolExecutor(
            1, thread_name_prefix="credalens-read"
        )  # one: JSON unfolds to many times its size
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="credalens-write")
        self._answering = Answering(model, guard, self.outputs, observers, limits)
        self._batcher, self._batcher_of_long = self._make_batcher(), self._make_batcher()

    def _make_batcher(self) -> Batcher:
        return Batcher(
            self._answering.replies,
            rows=self.limits.batch_rows,
            delay=self.limits.batch_delay,
            row_axis=self.model.row_axis,
            quick=self._answering.is_quick,
        )

    def routes(self) -> list[Route]:
        """The protocol's."""
        model = "/v2/models/{model}"
        routes = [
            Route("/v2", _reply(SERVER)),
            Route("/v2/health/live", _reply({"live": True})),
            Route("/v2/health/ready", _reply({"ready": True})),
        ]
        for path in (model, f"{model}/versions/{{version}}"):
            routes += [
                Route(path, self.metadata),
                Route(f"{path}/ready", self.ready),
                Route(f"{path}/infer", self.infer, methods=["POST"]),
            ]
        return routes

    async def metadata(self, request: Request) -> Response:
        """Inputs and outputs of the model."""
        self._check_model(request)
        return JSONResponse(
            {
                "name": self.model.name,
                "versions": [self.model.version],
                "platform": self.model.platform,
                "parameters": {"default_outputs": default_outputs(self.outputs)},
                "inputs": [spec.metadata() for spec in self.model.inputs],
                "outputs": [
                    {
                        "name": output.name,
                        "datatype": output.datatype or self.model.float_datatype,
                        "shape": [-1, -1] if output.per_class else [-1],
                    }
                    for output in self.outputs.values()
                ],
            }
        )

    async def ready(self, request: Request) -> Response:
        """Whether the model is there."""
        self._check_model(request)
        return JSONResponse({"name": self.model.name, "ready": True})

    async def infer(self, request: Request) -> ASGIApp:
        """The outputs for the rows of a request; the observers are told."""
        arrival = Arrival()
        try:
            response = await self._infer(request, arrival)
        except Exception as error:
            self._tell(arrival, error.status if isinstance(error, RequestError) else 500, str(error))
            raise
        self._tell(arrival, 200, None)
        return response

    async def _infer(self, request: Request, arrival: Arrival) -> ASGIApp:
        self._check_model(request)
        with self._places.take() as place:
            reading = self._read_job(request, arrival, place)
            job = await self._within_time(reading, 408, "the body did not arrive in time.", place=place)
            rest = arrival.since + self.limits.timeout - time.perf_counter()
            return await self._within_time(self._answer(job), 504, "there is no answer in time.", rest)

    async def _answer(self, job: Job) -> ASGIApp:
        batcher = self._batcher_of_long if self._answering.is_long(job) else self._batcher
        answer = await batcher.submit(job)
        if (most := _most_bytes(answer)) <= SHORT:
            return answer.written()
        held = self._unread.take(most)
        try:
            response = await self._written(answer)
        except BaseException:
            self._unread.give_back(held)
            raise
        held.size = int(response.headers["Content-Length"])
        return Sending(response, held, self._unread)

    async def _written(self, answer: Answer) -> InferResponse:
        """Written in a thread where it is long; whoever gives up waiting ends that."""
        if answer.is_short:
            return answer.written()
        left = Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writer, answer.written, left.is_set)
        finally:
            left.set()

    async def _within_time(
        self, work: Awaitable[Any], status: int, message: str, seconds: float | None = None, place: Place | None = None
    ) -> Any:
        try:
            async with asyncio.timeout(self.limits.timeout if seconds is None else seconds) as limit:
                if place is not None:
                    place.limit = limit
                return await work
        except TimeoutError:
            raise RequestError(message, status=status) from None

    async def _read_job(self, request: Request, arrival: Arrival, place: Place) -> Job:
        try:
            body = await read_body(request, self.limits.body_bytes, place)
        except ClientDisconnect:
            raise RequestError("the client has left.", status=GONE) from None
        place.limit = None
        header_length = request.headers.get(HEADER_LENGTH)
        if len(body) < LARGE:
            job = self._job(body, header_length)
        else:
            job = await asyncio.get_running_loop().run_in_executor(self._reader, self._job, body, header_length)
        arrival.id, arrival.rows = job.id, job.rows
        return job

    def _job(self, body: bytes, header_length: str | None) -> Job:
        request = read_request(body, header_length)
        rows = self.model.check(request.inputs, self.limits)
        wanted = request.outputs or tuple(WantedOutput(name, request.binary) for name in default_outputs(self.outputs))
        for output in wanted:
            check_output(output.name, self.outputs)
        job = Job(request.id, request.inputs, rows, wanted)
        self._answering.check_members(job)
        self._answering.check_size(job)
        return job

    def _check_model(self, request: Request) -> None:
        name, version = request.path_params["model"], request.path_params.get("version", self.model.version)
        if (name, version) != (self.model.name, self.model.version):
            known = f"{self.model.name!r}, version {self.model.version!r}"
            raise RequestError(
                f"there is no model {name!r:.80}, version {version!r:.80}; there is {known}.", status=404
            )

    def _tell(self, arrival: Arrival, status: int, error: str | None) -> None:
        seconds = time.perf_counter() - arrival.since
        event = Answered(self.model.name, self.model.version, status, arrival.id, arrival.rows, seconds, error)
        tell(self.observers, lambda observer: observer.answered, event)


def _most_bytes(answer: Answer) -> int:
    """About what an answer takes, before it is written."""
    arrays = ((answer.arrays[output.name], output.binary) for output in answer.outputs)
    return sum(array.nbytes if binary else NUMBER * array.size for array, binary in arrays)


def _reply(content: dict[str, Any]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return JSONResponse(content)

    return endpoint
