"""BatchPredictor: one prediction for all jobs of a batch, the outputs that they want, and an answer for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.members import BadRowError
from credalens.checks.options import count_text
from credalens.core.scores import SCORES
from credalens.guard import Decisions
from credalens.guard.signature import Signature
from credalens.prediction import CredalPrediction
from credalens.serve.batcher import Job, Reply, Turns
from credalens.serve.models import ServedModel
from credalens.serve.observer import LOG, BatchDone, Observer, tell
from credalens.serve.protocol import InferRequest, RequestError, WantedOutput, datatype_of
from credalens.serve.responses import Answer
from credalens.serve.settings import Limits

Part = tuple[dict[str, NDArray], BatchDone]

QUICK_CLASSES: Final = 20
# Members times rows times classes of the first part of a batch that wants outputs of `DEFAULT` only; else it is one row.
FIRST_VALUES: Final = 50_000
PART_SECONDS: Final = 0.25  # that the parts after it are to take
# Above them one row may take long, and nothing interrupts it: bounds of the entropy, or `hartley`, of one row of 10,000
# classes took up to four seconds on two busy cores, `hartley` of 3,000 a tenth of one.
LONG_CLASSES: Final = 2000
LONG_VALUES: Final = 200_000  # members times classes above which the same is so


@dataclass(frozen=True)
class Output:
    """An output that a request may ask for by its name: rows, or rows x classes.

    :ivar compute: from a prediction; from the guard's decisions about it where the output is ``guarded``.
    :ivar datatype: of the protocol; None for the precision of the prediction.
    """

    name: str
    compute: Callable[[Any], Any]
    datatype: str | None = None
    per_class: bool = False
    guarded: bool = False

    def values(self, prediction: CredalPrediction, decisions: Decisions | None, /) -> NDArray:
        """The values as a NumPy array."""
        array = to_numpy(self.compute(decisions if self.guarded else prediction))[0]
        return array.astype(np.int64, copy=False) if self.datatype == "INT64" else array

    def metadata(self, float_datatype: str, /) -> dict[str, Any]:
        """The output as the protocol describes it."""
        shape = [-1, -1] if self.per_class else [-1]
        return {"name": self.name, "datatype": self.datatype or float_datatype, "shape": shape}


OF_PREDICTION: Final = (
    Output("prediction", lambda x: x.predict(), "INT64"),
    *(Output(name, attrgetter(name), per_class=True) for name in ("probability", "lower", "upper", "mean")),
    Output("set", lambda x: x.predict_set(), "BOOL", per_class=True),
    *(Output(score.name, score.compute, "INT64" if score.unit == "classes" else None) for score in SCORES.values()),
)
OF_GUARD: Final = (
    Output("prediction", attrgetter("prediction"), "INT64", guarded=True),  # the class that it decides about
    Output("decision", attrgetter("decision"), "BYTES", guarded=True),
    Output("p_value", attrgetter("p_value"), "FP64", guarded=True),
    Output("reason", attrgetter("reason"), "BYTES", guarded=True),
    Output("guard_set", attrgetter("set"), "BOOL", per_class=True, guarded=True),
)
DEFAULT: Final = (
    "prediction", "probability", "lower", "upper", "total", "aleatoric", "epistemic", "decision", "p_value", "reason",
)  # fmt: skip


class BatchPredictor:
    """Answers batches of jobs by a model and its guard, and tells observers of them."""

    def __init__(self, model: ServedModel, limits: Limits, observers: Sequence[Observer] = ()) -> None:
        self.model, self.limits, self.observers = model, limits, observers
        lacking = {name for name, score in SCORES.items() if score.needs_members and not model.has_members}
        if model.guard is None or model.guard.sets is None:
            lacking.add("guard_set")
        outputs = (*OF_PREDICTION, *(() if model.guard is None else OF_GUARD))
        self.outputs = {output.name: output for output in outputs if output.name not in lacking}
        self.default_outputs = tuple(name for name in DEFAULT if name in self.outputs)
        self._classes = model.classes  # where the model does not say how many they are, the last prediction does
        self._telling = Lock()  # observers need not know that there are two threads

    def job_of(self, request: InferRequest, /) -> Job:
        """Make a job of a request; refuses one that does not fit the model, or whose answer would be too large."""
        rows = self.model.check(request.inputs, self.limits)
        outputs = request.outputs or tuple(WantedOutput(name, request.binary) for name in self.default_outputs)
        for output in outputs:
            if output.name not in self.outputs:
                raise RequestError(f"there is no output {output.name!r}; the outputs are {', '.join(self.outputs)}.")
        job = Job(request.id, request.inputs, rows, outputs, self.model.row_axis)
        self._check_size(job)
        return job

    def _check_size(self, job: Job) -> None:
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

    def _row_of(self, job: Job) -> tuple[int, int]:
        """Classes, and values in all members, of a row."""
        classes = self._classes_of(job) or self.limits.classes
        return classes, max(classes, sum(array.size for array in job.inputs.values()) // job.rows)

    def is_long(self, job: Job, /) -> bool:
        """Whether one row may take long, if the model may be called in two threads: one that only does the credal part."""
        classes, values = self._row_of(job)
        return self.model.class_axis is not None and (classes > LONG_CLASSES or values > LONG_VALUES)

    def is_quick(self, jobs: Sequence[Job], /) -> bool:
        """Whether the answers take less time than to hand the jobs to a thread. Many classes may take long."""
        axis, guard = self.model.class_axis, self.model.guard
        values = sum(array.size for job in jobs for array in job.inputs.values())
        few_classes = axis is None or all(array.shape[axis] <= QUICK_CLASSES for array in jobs[0].inputs.values())
        names = {*jobs[0].names, *(() if guard is None else (guard.score,))}
        return values <= self.model.quick_values and few_classes and names.issubset(DEFAULT)

    def replies(self, jobs: Sequence[Job], waiting: int, given_up: Callable[[], bool], /) -> Turns:
        """A reply for each job. Where a batch fails, each job is tried alone: only the bad one fails.

        ``given_up`` says whether nobody waits for the replies any more.
        """
        parts = None
        try:
            parts = yield from self._parts(jobs, waiting, given_up)
        except Exception as error:
            if len(jobs) == 1:
                return [_refusal(error)]
        if parts is None:
            replies: list[Reply] = []
            for job in jobs:
                replies += yield from self.replies([job], waiting, given_up)
                yield
            return replies
        with self._telling:
            for _, event in parts:  # only now: rows of a request that is refused count for nothing
                tell(self.observers, lambda observer: observer.batch_done, event)
        arrays = parts[0][0]
        if len(parts) > 1:
            arrays = {name: np.concatenate([part[name] for part, _ in parts]) for name in arrays}
        answers, start = list[Reply](), 0
        for job in jobs:
            about = {"model_name": self.model.name, "model_version": self.model.version}
            about |= {} if job.id is None else {"id": job.id}
            own = {name: array[start : start + job.rows] for name, array in arrays.items()}
            answers.append(Answer(about, job.outputs, own))
            start += job.rows
        return answers

    def _parts(
        self, jobs: Sequence[Job], waiting: int, given_up: Callable[[], bool]
    ) -> Generator[None, None, list[Part]]:
        """The outputs and events of all rows, no more of which at a time than others can wait for."""
        first, axis, inputs = jobs[0], self.model.row_axis, jobs[0].inputs
        if len(jobs) > 1:
            inputs = {name: np.concatenate([job.inputs[name] for job in jobs], axis) for name in inputs}
        most = FIRST_VALUES // self._row_of(first)[1] if {*first.names}.issubset(DEFAULT) else 1
        start, end, parts = 0, sum(job.rows for job in jobs), list[Part]()
        while start < end:
            if parts:
                yield
            if given_up():
                raise RequestError("nobody waits for the answer.", status=504)
            begin = time.perf_counter()
            most = min(max(most, 1), self.limits.batch_rows)
            rows = (*(slice(None),) * axis, slice(start, start + most))
            prediction = self._predict(jobs, {name: x[rows] for name, x in inputs.items()}, start)
            decisions, arrays = self.outputs_of(prediction, first.names)
            done, seconds = len(prediction), time.perf_counter() - begin
            about = self.model.name, self.model.version, len(jobs), done, seconds, waiting
            parts.append((arrays, BatchDone(*about, prediction, decisions)))
            start += most
            most = int(most * min(PART_SECONDS / max(seconds, 1e-9), 4.0))
        return parts

    def _predict(self, jobs: Sequence[Job], inputs: dict[str, NDArray], start: int) -> CredalPrediction:
        try:
            prediction = self.model.predict(inputs)
        except BadRowError as error:
            name = f"{self.model.wraps}, row {start + error.row}, member {error.member}"
            raise RequestError(f"{name}: {error.fault}") from error
        except (ValueError, TypeError) as error:  # its words are for its owner, and may hold what is nobody's business
            listed = ", ".join(f"{name!r} {datatype_of(x)} {list(x.shape)}" for name, x in jobs[0].inputs.items())
            message = f"the model refuses the inputs {listed} ({type(error).__name__}); the server's log says why."
            if len(jobs) == 1:  # else each is tried alone
                LOG.warning(message, exc_info=error)
            raise RequestError(message) from error
        rows, batch = next(iter(inputs.values())).shape[self.model.row_axis], tuple(prediction.total.shape)
        if batch != (rows,):
            raise RequestError(
                f"the model's prediction has shape {batch} for inputs of {count_text(rows, 'row')}.", status=500
            )
        if self.model.class_axis is None and (classes := prediction.lower.shape[-1]) != self._classes:
            self._classes = classes
            for job in jobs:
                self._check_size(job)
        return prediction

    def outputs_of(
        self, prediction: CredalPrediction, names: Iterable[str], /
    ) -> tuple[Decisions | None, dict[str, NDArray]]:
        """The decisions of the guard, where there is one, and the outputs that are named."""
        decisions, guard = None, self.model.guard
        if guard is not None:
            try:
                guard.check(Signature.of(prediction))
            except ValueError as error:  # a model that makes predictions of another kind is no fault of clients
                raise RequestError(f"the guard does not fit the model: {error}", status=500) from error
            decisions = guard.decide_rows(prediction)
        return decisions, {name: self.outputs[name].values(prediction, decisions) for name in names}


def _refusal(error: Exception) -> RequestError:
    """The fault of the request where the outputs that it wants raise a ValueError or TypeError; else the server's."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, ValueError | TypeError):
        return RequestError(str(error))
    LOG.error("the model failed", exc_info=error)
    return RequestError(f"the model failed: {type(error).__name__}", status=500)
