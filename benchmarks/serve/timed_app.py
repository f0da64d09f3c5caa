"""What `credalens serve` serves, with clocks: at /spent the time that the credal part, and that the whole server has taken.

The credal part is `wrap`, the outputs that a request wants, the guard's decisions, and of the metrics the set sizes and the
drift alarm. Not in it: reading a request, running members, writing the answer, and all other counting.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from threading import Lock
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.serve.servers import VARIABLE
from credalens.serve import models, onnx_members, watch
from credalens.serve.predictor import BatchPredictor
from credalens.serve.running import make_app
from credalens.serve.settings import Settings


class Clock:
    """Adds up what some functions take: processor time of their thread, and time on the wall."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0
        self._lock = Lock()

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, counted."""

        def call(*arguments: Any, **options: Any) -> Any:
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
                with self._lock:
                    self.cpu, self.wall = self.cpu + cpu, self.wall + wall

        return call


def application() -> Starlette:
    """For `uvicorn --factory`: the application of the settings in the environment."""
    asked, counting = Clock(), Clock()
    for clock, place, name in (
        (asked, models, "wrap_members"),
        (asked, onnx_members, "wrap_members"),
        (asked, BatchPredictor, "outputs_of"),
        (counting, watch, "_set_sizes"),
        (counting, watch, "update"),
    ):
        setattr(place, name, clock.timed(getattr(place, name)))

    async def spent(request: Request) -> Response:
        credal = {"wall": asked.wall, "cpu": asked.cpu + counting.cpu}
        return JSONResponse({"credal": credal, "process": time.process_time()})

    app = make_app(Settings(**json.loads(os.environ[VARIABLE])))
    app.router.routes.append(Route("/spent", spent))
    return app
