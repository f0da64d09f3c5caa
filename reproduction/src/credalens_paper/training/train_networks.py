"""Train networks into a folder, here or on Ray, each once: what is finished is kept, what was interrupted goes on.

Each network is a job; several of them may train side by side on one device, their steps interleaved.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, final

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from credalens.storage.run_folder import RunFolder, check_settings
from credalens_paper.ray_tasks import Done, for_each, network_request
from credalens_paper.training.devices import (
    DeviceImages,
    TrainingData,
    device_name,
    fast_math,
    find_device,
    find_precision,
)
from credalens_paper.training.learner import EpochRecord, Learner, check_finite
from credalens_paper.training.network_folder import (
    CHECKPOINT,
    MODEL,
    REMEDY,
    Build,
    Note,
    check_configuration,
    is_finished,
    load_model,
    make_network,
    read_note,
    read_tensors,
    to_bytes,
    versions,
)
from credalens_paper.training.spec import TrainSpec, schedule_for

SHOW_EVERY: Final = 1.0  # seconds between two updates of a bar, each of which waits for the device
Show = Callable[[Learner, float], None]
"""Moves the bar of a learner, given the images that it trains on in a second."""


@dataclass(frozen=True)
class TrainResult:
    """A trained network: its folder, its epochs, and whether this call had to train it."""

    spec: TrainSpec
    folder: Path
    history: tuple[EpochRecord, ...]
    trained: bool


def train_models(
    specs: Sequence[TrainSpec],
    data: TrainingData,
    folder: str | Path,
    /,
    *,
    build: Build,
    device: str | torch.device | None = None,
    side_by_side: int = 1,
    precision: str = "auto",
    epochs: int | None = None,
    progress: bool = True,
    log: Callable[[str], None] | None = None,
    checkpoint_every: float = 60.0,
    compile: bool = False,  # noqa: A002  (torch's word for it)
) -> list[TrainResult]:
    """Train networks into ``folder/<key>/``: spec.json, history.json and model.safetensors.

    What is finished there is kept, and what was interrupted goes on exactly from its last checkpoint, one of which
    is made every ``checkpoint_every`` seconds. ``side_by_side`` networks train at a time on the one device, with the
    results that each would have alone. Students train after all others, so their teachers may be among the specs.
    ``build`` makes a backbone from its name, ``epochs`` stretches or shortens the schedule, ``log`` gets a line for
    each epoch.
    """
    _check_distinct(specs)
    classes = min((spec.classes for spec in specs), default=None)
    if classes is not None and data.labels.max() >= classes:
        where = int(data.labels.argmax())
        raise ValueError(f"labels must be below classes={classes}; label {data.labels[where]} is at index {where}.")
    for name, value in (("side_by_side", side_by_side), ("epochs", epochs)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}.")
    on = find_device(device)
    rounding = {"device": on.type, "precision": find_precision(precision, on), "compile": compile}
    setting = Setting(
        Path(folder), build, on, rounding, side_by_side == 1, epochs, data.fingerprint(), log, checkpoint_every
    )
    jobs = [Job(spec, setting) for spec in specs]
    waiting = [job for job in jobs if not job.is_finished()]
    for job in waiting:
        job.check(specs)
    if waiting:
        with progress_bars(hidden=not progress) as show, fast_math(on):
            images = DeviceImages(data, on)
            for students in (False, True):
                stage = [job for job in waiting if job.spec.distilled == students]
                run_jobs(stage, images, show, side_by_side=side_by_side)
    return [job.result(job in waiting) for job in jobs]


def train_models_on_ray(
    specs: Sequence[TrainSpec],
    data: TrainingData,
    folder: str | Path,
    /,
    *,
    device: str | None = None,
    cpus: int | None = None,
    gpus: float | None = None,
    done: Callable[[Done[TrainSpec, TrainResult]], None] = lambda task: None,
    **options: Any,
) -> list[TrainResult]:
    """``train_models`` with one task for each network on the connected Ray, ``done`` called as each ends.

    ``folder`` must be the same on all machines. The results are those of one machine, to the bit on the same kind of
    CPU: a network uses as many threads as torch does here, or ``cpus``. It takes a GPU where the cluster has one, or
    the share ``gpus``. When its worker or machine is lost it goes on from its last checkpoint.
    Students begin when all teachers are trained. The training set travels once to each machine.
    """
    _check_distinct(specs)
    request = network_request(device, cpus=cpus, gpus=gpus)
    options |= {"device": device, "progress": False}
    where = Path(folder).absolute()

    def work(spec: TrainSpec) -> TrainResult:
        return train_models([spec], data, where, **options)[0]

    results: dict[TrainSpec, TrainResult] = {}
    for students in (False, True):
        stage = [spec for spec in specs if spec.distilled == students]
        results |= zip(stage, for_each(work, stage, request, done=done), strict=True)
    return [results[spec] for spec in specs]


def _check_distinct(specs: Sequence[TrainSpec], /) -> None:
    """Refuse to train one network twice into one folder."""
    for spec, count in Counter(specs).items():
        if count > 1:
            raise ValueError(f"{spec.key} is asked for {count} times; give each network another seed.")


@dataclass(frozen=True)
class Setting:
    """What all jobs of a call share.

    :ivar rounding: device, precision and whether steps are compiled; they decide the last digits, and a checkpoint goes on
        exactly only under the same.
    :ivar graphs: whether compiled steps are replayed as CUDA graphs. All graphs of a process use the same memory, so
        networks that train side by side, each on a stream of its own, must do without.
    :ivar data: the fingerprint of the training set.
    :ivar log: gets a line for each epoch; :ivar save_every: seconds between two checkpoints.
    """

    folder: Path
    build: Build
    device: torch.device
    rounding: Note
    graphs: bool
    epochs: int | None
    data: Note
    log: Callable[[str], None] | None = None
    save_every: float = 60.0


@final
class Job:
    """One network to train into its folder, or to find trained; from ``start`` on it has a learner and clocks."""

    learner: Learner

    def __init__(self, spec: TrainSpec, setting: Setting, /):
        self.spec, self._setting = spec, setting
        self.schedule = schedule_for(spec, epochs=setting.epochs)
        self.path = setting.folder / spec.key
        self._configuration: Note = {"spec": spec.as_dict(), "schedule": self.schedule.as_dict(), "data": setting.data}
        self._files, self._held = RunFolder(self.path), ExitStack()
        self._stream: torch.cuda.Stream | None = None

    def is_finished(self) -> bool:
        """Whether the trained network is there; an error where it has another configuration."""
        return is_finished(self.path, self._configuration)

    def check(self, specs: Collection[TrainSpec], /) -> None:
        """Refuse before any work: a checkpoint of another configuration, device or precision, a teacher that nobody trains."""
        if (path := self.path / CHECKPOINT).is_file():
            check_configuration(path, self._configuration)
            check_settings(read_note(path)["rounding"], self._setting.rounding, path, REMEDY)
        for teacher in self.spec.teacher_specs():
            if teacher not in specs and not (self._setting.folder / teacher.key / MODEL).is_file():
                raise FileNotFoundError(
                    f"{self.spec.key} learns from {teacher.key}, which is not in {self._setting.folder} and not among "
                    "the specs: train its teachers first, or in the same call."
                )

    def start(self, images: DeviceImages, /) -> None:
        """Make the learner, lock the folder, go on from its checkpoint, record where it starts and with which versions."""
        if images.device.type == "cuda":
            self._stream = torch.cuda.Stream(images.device)  # type: ignore[no-untyped-call]
            self._stream.wait_stream(torch.cuda.current_stream(images.device))  # the images may still be on their way
        setting, spec = self._setting, self.spec
        where: dict[str, Any] = {"build": setting.build, "device": setting.device}
        with self._queued():
            self.learner = Learner(
                spec,
                self.schedule,
                make_network(spec, setting.build, setting.device, initial_std=self.schedule.initial_std),
                images,
                teachers=tuple(load_model(teacher, setting.folder, **where) for teacher in spec.teacher_specs()),
                precision=setting.rounding["precision"],
                compile=setting.rounding["compile"],
                graphs=setting.graphs,
            )
            self._held.enter_context(self._files.locked())
            self._files.remove_partial_files()
            if (self.path / CHECKPOINT).is_file():
                tensors, note = read_tensors(self.path / CHECKPOINT)
                self.learner.restore(tensors, note["state"])
            earlier: list[Note] = []
            if self.learner.step and (self.path / "spec.json").is_file():
                note = self._files.read_json("spec.json")
                earlier = [*note["earlier"], note["provenance"]]
            begun = {"step": self.learner.step, **versions(), "seed": spec.seed, **setting.rounding}
            begun["device"] = device_name(images.device)
            self._files.write_json("spec.json", {**self._configuration, "provenance": begun, "earlier": earlier})
        self._first_step, self._began = self.learner.step, time.perf_counter()
        self._saved = self._shown = self._began

    def advance(self, show: Show, /) -> None:
        """One step, and now and then a checkpoint and an update of the bar."""
        with self._queued():
            epochs = len(self.learner.history)
            self.learner.advance()
            if self._setting.log is not None and len(self.learner.history) > epochs:
                last = self.learner.history[-1]
                self._setting.log(
                    f"{self.spec.key}: epoch {last.epoch}/{self.schedule.epochs}, loss {last.loss:.4f}, accuracy "
                    f"{100 * last.accuracy:.2f} %, learning rate {last.learning_rate:.2g}, {last.seconds:.1f} s"
                )
            if self.learner.finished:
                self._finish()
            elif time.perf_counter() - self._saved >= self._setting.save_every:
                self.save()
            now = time.perf_counter()
            if self.learner.finished or now - self._shown >= SHOW_EVERY:
                images = (self.learner.step - self._first_step) * self.schedule.batch
                show(self.learner, images / (now - self._began))
                self._shown = now

    def save(self) -> None:
        """Write a checkpoint."""
        with self._queued():
            tensors, state = self.learner.state()
            self._write(CHECKPOINT, tensors, rounding=self._setting.rounding, state=state)
        self._saved = time.perf_counter()

    def _finish(self) -> None:
        """Write the history, then the network, then delete the checkpoint; another run may enter then."""
        check_finite(self.learner.model, self.spec, self.learner.step)
        self._files.write_json("history.json", [asdict(record) for record in self.learner.history])
        self._write(MODEL, self.learner.model.state_dict())
        (self.path / CHECKPOINT).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Unlock the folder, where this run has locked it."""
        self._held.close()

    def result(self, trained: bool, /) -> TrainResult:
        """What a finished training has left."""
        history = tuple(EpochRecord(**record) for record in self._files.read_json("history.json"))
        return TrainResult(self.spec, self.path, history, trained)

    def _write(self, name: str, tensors: dict[str, torch.Tensor], **note: Any) -> None:
        with self._files.writing(name) as file:
            file.write(to_bytes(tensors, {"configuration": self._configuration, **note}))

    def _queued(self) -> AbstractContextManager[object]:
        """The context in which this network's work is queued; other jobs do not wait for it."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)


def run_jobs(jobs: Iterable[Job], images: DeviceImages, show: Show, /, *, side_by_side: int) -> None:
    """Train all networks, ``side_by_side`` of them at a time, step by step in turn.

    They share nothing that changes, so each becomes what it would have become alone. When one fails, the others are
    stored where they are.
    """
    waiting, running = deque(jobs), list[Job]()
    try:
        while waiting or running:
            while waiting and len(running) < side_by_side:
                running.append(waiting.popleft())
                running[-1].start(images)
            for job in running:
                try:
                    job.advance(show)
                except BaseException as error:
                    error.add_note(f"While training {job.spec.key}, step {job.learner.step}.")
                    for other in (other for other in running if other is not job and not other.learner.finished):
                        with suppress(OSError, FloatingPointError):  # the first error is the one to report
                            other.save()
                    raise
            running[:] = [job for job in running if not job.learner.finished]
    finally:
        for job in running:
            job.close()


@contextmanager
def progress_bars(*, hidden: bool = False) -> Iterator[Show]:
    """Bars with epoch, loss, accuracy and images a second; hidden on request and if stderr is not a terminal."""
    console = Console(stderr=True)
    text = TextColumn("{task.fields[text]}")
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), text, TimeRemainingColumn(compact=True)
    tasks = {}
    with Progress(*columns, console=console, disable=hidden or not console.is_terminal) as progress:

        def show(learner: Learner, speed: float) -> None:
            key, epochs, (loss, accuracy) = learner.spec.key, learner.schedule.epochs, learner.averages()
            if key not in tasks:
                tasks[key] = progress.add_task(key, total=learner.steps, text="")
            epoch = min(learner.step // learner.steps_per_epoch + 1, epochs)
            numbers = f"loss {loss:.3f}  accuracy {100 * accuracy:.1f} %  {speed:,.0f} img/s"
            progress.update(tasks[key], completed=learner.step, text=f"epoch {epoch}/{epochs}  {numbers}")

        yield show
