"""Answer a batch: one prediction for all of its jobs, and a response for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.bad_rows import BadRowError
from credalens.checks.counted import count_text
from credalens.guard import Decisions, Guard
from credalens.prediction import CredalPrediction
from credalens.serve.batching.jobs import Job, JoinedJobs
from credalens.serve.models.served import ServedModel
from credalens.serve.observer import LOG, BatchDone, Observer, tell
from credalens.serve.outputs import DEFAULT, Output, Predicted
from credalens.serve.protocol.datatypes import datatype_of
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.infer_response import InferResponse, write_response

Reply = InferResponse | RequestError
QUICK_CLASSES: Final = 20


@dataclass(frozen=True, eq=False)
class Answering:
    """What a batch is answered with: the model, its guard, and the outputs by name."""

    model: ServedModel
    guard: Guard | None
    outputs: dict[str, Output]
    observers: tuple[Observer, ...]
    batch_rows: int

    def is_quick(self, jobs: Sequence[Job], /) -> bool:
        """Whether the answers take less time than to hand the jobs to a thread."""
        values = sum(array.size for job in jobs for array in job.inputs.values())
        names = {*jobs[0].names, *(() if self.guard is None else (self.guard.score,))}
        return values <= self.model.quick_values and names.issubset(DEFAULT) and self._has_few_classes(jobs[0])

    def _has_few_classes(self, job: Job) -> bool:
        """Bounds of the entropy take long for some predictions with many classes."""
        axis = self.model.class_axis
        return axis is None or all(array.shape[axis] <= QUICK_CLASSES for array in job.inputs.values())

    def replies(self, jobs: Sequence[Job], waiting: int, given_up: Callable[[], bool], /) -> list[Reply]:
        """A response, or what is wrong, for each job. Where a batch fails, each job is tried alone: only the bad one fails.

        ``given_up`` says whether nobody waits for the replies any more.
        """
        joined = JoinedJobs(jobs, self.model.row_axis)
        try:
            parts = [self._part(joined, *piece, waiting, given_up) for piece in joined.pieces(self.batch_rows)]
        except Exception as error:
            if len(jobs) > 1:
                return [self.replies([job], waiting, given_up)[0] for job in jobs]
            return [_refusal(error)]
        for _, event in parts:  # only now: rows of a request that is refused count for nothing
            tell(self.observers, lambda observer: observer.batch_done, event)
        arrays = parts[0][0] if len(parts) == 1 else _joined([arrays for arrays, _ in parts])
        return [self._reply(job, arrays, rows) for job, rows in zip(jobs, joined.slices, strict=True)]

    def _part(
        self, joined: JoinedJobs, start: int, inputs: dict[str, NDArray], waiting: int, given_up: Callable[[], bool]
    ) -> tuple[dict[str, NDArray], BatchDone]:
        """The outputs of the rows from ``start`` on, and what observers are told of them."""
        if given_up():
            raise RequestError("nobody waits for the answer.", status=504)
        begin = time.perf_counter()
        prediction = self._predict(joined.jobs, inputs, start)
        decisions, arrays = self.outputs_of(prediction, joined.jobs[0].names)
        rows, seconds = len(prediction), time.perf_counter() - begin
        event = BatchDone(
            self.model.name, self.model.version, len(joined.jobs), rows, seconds, waiting, prediction, decisions
        )
        return arrays, event

    def outputs_of(
        self, prediction: CredalPrediction, names: Iterable[str], /
    ) -> tuple[Decisions | None, dict[str, NDArray]]:
        """What the guard decides, where there is one, and the outputs that are named."""
        decisions = None if self.guard is None else _decide(self.guard, prediction)
        predicted = Predicted(prediction, decisions)
        return decisions, {name: self.outputs[name].values(predicted) for name in names}

    def _predict(self, jobs: Sequence[Job], inputs: dict[str, NDArray], start: int) -> CredalPrediction:
        try:
            prediction = self.model.predict(inputs)
        except BadRowError as error:
            name = f"{self.model.wraps}, row {start + error.row}, member {error.member}"
            raise RequestError(f"{name}: {error.fault}") from error
        except (ValueError, TypeError) as error:
            raise _refused_by_model(jobs, error) from error
        rows, batch = next(iter(inputs.values())).shape[self.model.row_axis], tuple(prediction.total.shape)
        if batch != (rows,):
            raise RequestError(
                f"the model's prediction has shape {batch} for inputs of {count_text(rows, 'row')}.", status=500
            )
        return prediction

    def _reply(self, job: Job, arrays: dict[str, NDArray], rows: slice) -> InferResponse:
        about = {"model_name": self.model.name, "model_version": self.model.version}
        about |= {} if job.id is None else {"id": job.id}
        return write_response(about, job.outputs, {name: array[rows] for name, array in arrays.items()})


def _joined(parts: Sequence[dict[str, NDArray]]) -> dict[str, NDArray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _decide(guard: Guard, prediction: CredalPrediction) -> Decisions:
    """What the guard decides; never about predictions of another kind than it was fitted on, where no promise holds."""
    fitted, given = (guard.n_members, guard.classes), (prediction.n_members, prediction.lower.shape[-1])
    if fitted != given:
        kind = f"{count_text(fitted[0], 'member')} and {fitted[1]} classes"
        message = f"the guard is for {kind}; the model has {given[0]} and {given[1]}."
        raise RequestError(message, status=500)
    return guard.decide(prediction)


def _refused_by_model(jobs: Sequence[Job], error: Exception) -> RequestError:
    """What the model says is not told: its words were written for its owner, and may hold what is nobody's business."""
    inputs = ", ".join(f"{name!r} {datatype_of(x)} {list(x.shape)}" for name, x in jobs[0].inputs.items())
    message = f"the model refuses the inputs {inputs} ({type(error).__name__}); the server's log says why."
    if len(jobs) == 1:  # else each is tried alone
        LOG.warning(message, exc_info=error)
    return RequestError(message)


def _refusal(error: Exception) -> RequestError:
    """The fault of the request where the outputs that it wants raise a ValueError or TypeError; else the server's."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, ValueError | TypeError):
        return RequestError(str(error))
    LOG.error("the model failed", exc_info=error)
    return RequestError(f"the model failed: {type(error).__name__}", status=500)
