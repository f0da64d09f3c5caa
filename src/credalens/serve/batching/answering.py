"""Answer a batch: one prediction for all of its jobs, and a response for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.checks.bad_rows import BadRowError
from credalens.checks.options import count_text
from credalens.guard import Decisions, Guard
from credalens.guard.signature import PredictionKind
from credalens.prediction import CredalPrediction
from credalens.serve.batching.jobs import Job, JoinedJobs
from credalens.serve.limits import Limits
from credalens.serve.models.served import ServedModel
from credalens.serve.observer import LOG, BatchDone, Observer, tell
from credalens.serve.outputs import DEFAULT, Output, Predicted
from credalens.serve.protocol.datatypes import datatype_of
from credalens.serve.protocol.errors import RequestError
from credalens.serve.protocol.infer_response import Answer

Reply = Answer | RequestError
Part = tuple[dict[str, NDArray], BatchDone]
Turns = Generator[None, None, list[Reply]]
"""The work on a batch, in turns: it stops between parts, and ends with a reply for each job."""

QUICK_CLASSES: Final = 20
FIRST_VALUES: Final = 50_000
"""Members times rows times classes of the first part of a batch that wants outputs of `DEFAULT` only; else it is one row."""
LONG_CLASSES: Final = 2000
"""Above them one row may take long, and nothing interrupts it: bounds of the entropy, or `hartley`, of one row of 10,000
classes took up to four seconds on two busy cores, `hartley` of 3,000 a tenth of one."""
LONG_VALUES: Final = 200_000
"""Members times classes above which the same is so."""
PART_SECONDS: Final = 0.25
"""What the parts after it are to take."""


@dataclass(eq=False)
class Answering:
    """What a batch is answered with: the model, its guard, and the outputs by name."""

    model: ServedModel
    guard: Guard | None
    outputs: dict[str, Output]
    observers: tuple[Observer, ...]
    limits: Limits

    def __post_init__(self) -> None:
        """Without a declared number of classes the last prediction tells it."""
        self._classes = self.model.classes
        self._telling = Lock()  # observers need not know that there are two threads

    def is_quick(self, jobs: Sequence[Job], /) -> bool:
        """Whether the answers take less time than to hand the jobs to a thread."""
        values = sum(array.size for job in jobs for array in job.inputs.values())
        names = {*jobs[0].names, *(() if self.guard is None else (self.guard.score,))}
        return values <= self.model.quick_values and names.issubset(DEFAULT) and self._has_few_classes(jobs[0])

    def _has_few_classes(self, job: Job) -> bool:
        """Bounds of the entropy take long for some predictions with many classes."""
        axis = self.model.class_axis
        return axis is None or all(array.shape[axis] <= QUICK_CLASSES for array in job.inputs.values())

    def check_size(self, job: Job, /) -> None:
        """Refuse a job whose answer, or whose prediction, would hold too many values, as soon as that can be known."""
        if (classes := self._classes_of(job)) is None:
            return
        values = max(classes, sum(classes if self.outputs[name].per_class else 1 for name in job.names)) * job.rows
        if values > self.limits.values:
            raise RequestError(
                f"the answer would hold {values:,} values for {count_text(job.rows, 'row')} of {classes} classes; at most "
                f"{self.limits.values:,} are computed at once: ask for fewer rows or outputs."
            )

    def _classes_of(self, job: Job) -> int | None:
        axis = self.model.class_axis
        return self._classes if axis is None else max(array.shape[axis] for array in job.inputs.values())

    def is_long(self, job: Job, /) -> bool:
        """Whether one row may take long, of a model that may be asked in two threads: one that only does the credal part."""
        classes, values = self._row_of(job)
        return self.model.class_axis is not None and (classes > LONG_CLASSES or values > LONG_VALUES)

    def _row_of(self, job: Job) -> tuple[int, int]:
        """Classes, and values in all members, of a row."""
        classes = self._classes_of(job) or self.limits.classes
        return classes, max(classes, sum(array.size for array in job.inputs.values()) // job.rows)

    def check_members(self, job: Job, /) -> None:
        """Refuse members' outputs of too many members, which no row can be computed without."""
        if self.model.class_axis is None:
            return
        for name, array in job.inputs.items():
            if (members := array.size // (array.shape[self.model.class_axis] * job.rows)) > self.limits.members:
                raise RequestError(
                    f"input {name!r} has {members:,} members; at most {self.limits.members:,} are accepted."
                )

    def replies(self, jobs: Sequence[Job], waiting: int, given_up: Callable[[], bool], /) -> Turns:
        """A reply for each job. Where a batch fails, each job is tried alone: only the bad one fails.

        ``given_up`` says whether nobody waits for the replies any more.
        """
        joined = JoinedJobs(jobs, self.model.row_axis)
        try:
            parts = yield from self._parts(joined, waiting, given_up)
        except Exception as error:
            if len(jobs) == 1:
                return [_refusal(error)]
        else:
            return self._told(joined, parts)
        replies: list[Reply] = []
        for job in jobs:
            replies += yield from self.replies([job], waiting, given_up)
            yield
        return replies

    def _parts(
        self, joined: JoinedJobs, waiting: int, given_up: Callable[[], bool]
    ) -> Generator[None, None, list[Part]]:
        """The outputs of all rows, and what observers are told: no more rows at a time than others can wait for."""
        first = joined.jobs[0]
        most = FIRST_VALUES // self._row_of(first)[1] if {*first.names}.issubset(DEFAULT) else 1
        start, parts = 0, list[Part]()
        while start < joined.rows:
            if parts:
                yield
            most = min(max(most, 1), self.limits.batch_rows)
            parts.append(self._part(joined, start, most, waiting, given_up))
            start += most
            most = int(most * min(PART_SECONDS / max(parts[-1][1].seconds, 1e-9), 4.0))
        return parts

    def _told(self, joined: JoinedJobs, parts: Sequence[Part]) -> list[Reply]:
        with self._telling:
            for _, event in parts:  # only now: rows of a request that is refused count for nothing
                tell(self.observers, lambda observer: observer.batch_done, event)
        arrays = parts[0][0] if len(parts) == 1 else _joined([arrays for arrays, _ in parts])
        return [self._reply(job, arrays, rows) for job, rows in zip(joined.jobs, joined.slices, strict=True)]

    def _part(self, joined: JoinedJobs, start: int, most: int, waiting: int, given_up: Callable[[], bool]) -> Part:
        """The outputs of the rows from ``start`` on, and what observers are told of them."""
        if given_up():
            raise RequestError("nobody waits for the answer.", status=504)
        begin = time.perf_counter()
        prediction = self._predict(joined.jobs, joined.piece(start, most), start)
        self._learn_classes(joined.jobs, prediction.lower.shape[-1])
        decisions, arrays = self.outputs_of(prediction, joined.jobs[0].names)
        rows, seconds = len(prediction), time.perf_counter() - begin
        event = BatchDone(
            self.model.name, self.model.version, len(joined.jobs), rows, seconds, waiting, prediction, decisions
        )
        return arrays, event

    def _learn_classes(self, jobs: Sequence[Job], classes: int) -> None:
        if self.model.class_axis is None and classes != self._classes:
            self._classes = classes
            for job in jobs:
                self.check_size(job)

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

    def _reply(self, job: Job, arrays: dict[str, NDArray], rows: slice) -> Answer:
        about = {"model_name": self.model.name, "model_version": self.model.version}
        about |= {} if job.id is None else {"id": job.id}
        return Answer(about, job.outputs, {name: array[rows] for name, array in arrays.items()})


def _joined(parts: Sequence[dict[str, NDArray]]) -> dict[str, NDArray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _decide(guard: Guard, prediction: CredalPrediction) -> Decisions:
    """What the guard decides; a model that makes predictions of another kind than it was fitted on is no fault of clients."""
    try:
        guard.check(PredictionKind.of(prediction), prediction.base)
    except ValueError as error:
        raise RequestError(f"the guard does not fit the model: {error}", status=500) from error
    return guard.decide_rows(prediction)


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
