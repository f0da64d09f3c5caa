"""What `credalens serve` serves, and at /credal_seconds the processor time that its credal part has taken so far."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from credalens.prediction import CredalPrediction
from credalens.serve import Observer, app, member_outputs

OUTPUTS: Final = ("probability", "lower", "upper", "total", "aleatoric", "epistemic")


class CredalTime(Observer):
    """The processor time of `wrap`, all outputs computed."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._predict = member_outputs().predict

    def predict(self, inputs: dict[str, Any]) -> CredalPrediction:
        """What the model predicts."""
        begin = time.thread_time()
        prediction = self._predict(inputs)
        prediction.predict()
        for name in OUTPUTS:
            getattr(prediction, name)
        self.seconds += time.thread_time() - begin
        return prediction

    def routes(self) -> list[BaseRoute]:
        """Where it is told."""
        return [Route("/credal_seconds", self._show)]

    async def _show(self, request: Request) -> Response:
        return JSONResponse(self.seconds)


def application() -> Starlette:
    """For `uvicorn --factory`."""
    credal = CredalTime()
    return app(replace(member_outputs(), predict=credal.predict), observers=[credal])
