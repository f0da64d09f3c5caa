"""Train networks into a folder, here or on Ray, each once: what is finished is kept, what was interrupted goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from credalens_paper.ray_tasks import Done, for_each, network_request
from credalens_paper.training.device_images import DeviceImages, TrainingData
from credalens_paper.training.devices import fast_math, find_device, find_precision
from credalens_paper.training.jobs import Job, Reports, Setting, run_jobs
from credalens_paper.training.learner import EpochRecord
from credalens_paper.training.networks import Build
from credalens_paper.training.progress_bars import progress_bars
from credalens_paper.training.spec import TrainSpec


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

    >>> import numpy as np
    >>> from credalens_paper.training.networks import load_model
    >>> from tempfile import TemporaryDirectory
    >>> def build(name, *, classes, width, image_size, pretrained, seed):
    ...     with torch.random.fork_rng(devices=[]):
    ...         torch.manual_seed(seed)
    ...         return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * image_size**2, classes))
    >>> data = TrainingData(np.zeros((64, 8, 8, 3), np.uint8), np.arange(64) % 3, [0.5] * 3, [0.25] * 3)
    >>> spec = TrainSpec("black", "linear", "snn", seed=0, schedule="smoke", classes=3, image_size=8)
    >>> with TemporaryDirectory() as folder:
    ...     results = train_models([spec], data, folder, build=build, progress=False)
    ...     model = load_model(spec, folder, build=build)
    >>> [record.epoch for record in results[0].history]
    [1, 2]
    """
    _check(specs, data, side_by_side, epochs)
    on = find_device(device)
    setting = Setting(
        Path(folder), build, on, find_precision(precision, on), compile, side_by_side == 1, epochs, data.fingerprint()
    )
    jobs = [Job(spec, setting) for spec in specs]
    waiting = [job for job in jobs if not job.folder.is_finished()]
    for job in waiting:
        job.check(specs)
    if waiting:
        with progress_bars(hidden=not progress) as show, fast_math(on):
            images, reports = DeviceImages(data, on), Reports(show, log, checkpoint_every)
            for students in (False, True):
                stage = [job for job in waiting if job.spec.distilled == students]
                run_jobs(stage, images, reports, side_by_side=side_by_side)
    return [TrainResult(job.spec, job.folder.path, job.folder.history(), job in waiting) for job in jobs]


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
    work = partial(_train_one, data=data, folder=Path(folder).absolute(), **options)
    results: dict[TrainSpec, TrainResult] = {}
    for students in (False, True):
        stage = [spec for spec in specs if spec.distilled == students]
        results |= zip(stage, for_each(work, stage, request, done=done), strict=True)
    return [results[spec] for spec in specs]


def _train_one(spec: TrainSpec, /, *, data: TrainingData, folder: Path, **options: Any) -> TrainResult:
    [result] = train_models([spec], data, folder, **options)
    return result


def _check_distinct(specs: Sequence[TrainSpec], /) -> None:
    """Refuse to train one network twice into one folder."""
    for spec, count in Counter(specs).items():
        if count > 1:
            raise ValueError(f"{spec.key} is asked for {count} times; give each network another seed.")


def _check(specs: Sequence[TrainSpec], data: TrainingData, side_by_side: int, epochs: int | None) -> None:
    _check_distinct(specs)
    classes = min((spec.classes for spec in specs), default=None)
    if classes is not None and data.labels.max() >= classes:
        where = int(data.labels.argmax())
        raise ValueError(f"labels must be below classes={classes}; label {data.labels[where]} is at index {where}.")
    for name, value in (("side_by_side", side_by_side), ("epochs", epochs)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}.")
