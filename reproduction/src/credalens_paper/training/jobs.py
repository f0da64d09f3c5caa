"""One job for each network, and several jobs side by side on one device, their steps interleaved."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import torch

from credalens_paper.training.device_images import DeviceImages
from credalens_paper.training.learner import Learner
from credalens_paper.training.network_folder import MODEL, NetworkFolder, Note
from credalens_paper.training.networks import Build, load_model, make_network
from credalens_paper.training.progress_bars import Show, epoch_line
from credalens_paper.training.recipes.schedules import schedule_for
from credalens_paper.training.spec import TrainSpec

SHOW_EVERY: Final = 1.0
"""Seconds between two updates of a bar, each of which waits for the device."""


@dataclass(frozen=True)
class Setting:
    """What all jobs of a call share.

    :ivar graphs: whether compiled steps are replayed as CUDA graphs. All graphs of a process use the same memory, so
        networks that train side by side, each on a stream of its own, must do without.
    """

    folder: Path
    build: Build
    device: torch.device
    precision: str
    compile: bool
    graphs: bool
    epochs: int | None
    data: Note  # the fingerprint of the training set

    @property
    def rounding(self) -> Note:
        """What decides the last digits; a checkpoint goes on exactly only under the same."""
        return {"device": self.device.type, "precision": self.precision, "compile": self.compile}


@dataclass(frozen=True)
class Reports:
    """What is told while networks train, and how often their states are stored."""

    show: Show
    log: Callable[[str], None] | None
    save_every: float


@final
class Job:
    """One network to train, or to find trained; from ``start`` on it has a learner, a CUDA stream and clocks."""

    learner: Learner

    def __init__(self, spec: TrainSpec, setting: Setting, /):
        self.spec, self._setting = spec, setting
        self.schedule = schedule_for(spec, epochs=setting.epochs)
        configuration = {"spec": spec.as_dict(), "schedule": self.schedule.as_dict(), "data": setting.data}
        self.folder = NetworkFolder(setting.folder / spec.key, configuration, setting.rounding)
        self._stream: torch.cuda.Stream | None = None

    def check(self, specs: Collection[TrainSpec], /) -> None:
        """Refuse before any work: a checkpoint of another configuration, a teacher that nobody trains."""
        self.folder.check_resumable()
        for teacher in self.spec.teacher_specs():
            if teacher not in specs and not (self._setting.folder / teacher.key / MODEL).is_file():
                raise FileNotFoundError(
                    f"{self.spec.key} learns from {teacher.key}, which is not in {self._setting.folder} and not among "
                    "the specs: train its teachers first, or in the same call."
                )

    def start(self, images: DeviceImages, /) -> None:
        """Make the learner, or restore it from its checkpoint."""
        self._stream = _new_stream(images.device)
        with self._queued():
            self.learner = self._make_learner(images)
            self.folder.begin(self.learner, images.device)
        self._first_step, self._began = self.learner.step, time.perf_counter()
        self._saved = self._shown = self._began

    def advance(self, reports: Reports, /) -> None:
        """One step, and now and then a checkpoint and an update of the bar."""
        with self._queued():
            epochs = len(self.learner.history)
            self.learner.advance()
            if reports.log is not None and len(self.learner.history) > epochs:
                reports.log(epoch_line(self.learner))
            if self.learner.finished:
                self.folder.finish(self.learner)
            elif time.perf_counter() - self._saved >= reports.save_every:
                self.save()
            self._show(reports.show)

    def save(self) -> None:
        """Write a checkpoint."""
        with self._queued():
            self.folder.save(self.learner)
        self._saved = time.perf_counter()

    def _make_learner(self, images: DeviceImages) -> Learner:
        setting = self._setting
        return Learner(
            self.spec,
            self.schedule,
            make_network(self.spec, setting.build, setting.device, initial_std=self.schedule.initial_std),
            images,
            teachers=tuple(
                load_model(teacher, setting.folder, build=setting.build, device=setting.device)
                for teacher in self.spec.teacher_specs()
            ),
            precision=setting.precision,
            compile=setting.compile,
            graphs=setting.graphs,
        )

    def _queued(self) -> AbstractContextManager[object]:
        """The context in which this network's work is queued; other jobs do not wait for it."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _show(self, show: Show) -> None:
        now = time.perf_counter()
        if self.learner.finished or now - self._shown >= SHOW_EVERY:
            images = (self.learner.step - self._first_step) * self.schedule.batch
            show(self.learner, images / (now - self._began))
            self._shown = now


def run_jobs(jobs: Iterable[Job], images: DeviceImages, reports: Reports, /, *, side_by_side: int) -> None:
    """Train all networks, ``side_by_side`` of them at a time, step by step in turn.

    They share nothing that changes, so each becomes what it would have become alone. When one fails, the others are
    stored where they are.
    """
    waiting, running = deque(jobs), list[Job]()
    try:
        _run_in_turn(waiting, running, images, reports, side_by_side)
    finally:
        for job in running:
            job.folder.close()


def _run_in_turn(
    waiting: deque[Job], running: list[Job], images: DeviceImages, reports: Reports, side_by_side: int
) -> None:
    while waiting or running:
        while waiting and len(running) < side_by_side:
            running.append(waiting.popleft())
            running[-1].start(images)
        for job in running:
            try:
                job.advance(reports)
            except BaseException as error:
                error.add_note(f"While training {job.spec.key}, step {job.learner.step}.")
                _save_all(other for other in running if other is not job and not other.learner.finished)
                raise
        running[:] = [job for job in running if not job.learner.finished]


def _save_all(jobs: Iterable[Job]) -> None:
    for job in jobs:
        with suppress(OSError, FloatingPointError):  # the first error is the one to report
            job.save()


def _new_stream(device: torch.device) -> torch.cuda.Stream | None:
    if device.type != "cuda":
        return None
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))  # the images may still be on their way
    return stream
