"""Training on Ray: one task for each member, into the same folders as on one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from credalens.engines.cluster import import_ray, ray_cluster
from credalens.engines.tasks import Done, Request, for_each
from credalens_paper.training.networks import Build
from credalens_paper.training.run import (
    TrainingData,
    TrainResult,
    TrainSpec,
    check_distinct,
    train_models,
)

__all__ = ["member_request", "train_models_on_ray"]


def train_models_on_ray(
    specs: Sequence[TrainSpec],
    data: TrainingData,
    folder: str | Path,
    /,
    *,
    build: Build,
    address: str | None = None,
    cpus: int | None = None,
    gpus: float | None = None,
    max_retries: int = 3,
    done: Callable[[Done[TrainSpec, TrainResult]], None] = lambda task: None,
    device: str | None = None,
    **options: Any,
) -> list[TrainResult]:
    """``credalens_paper.training.run.train_models`` with one Ray task for each network, ``done`` called as each ends.

    ``folder`` must be the same on all machines. The results are those of one machine, to the bit on the same kind of
    CPU: a member uses as many threads as torch does here, or ``cpus``. It takes a GPU where the cluster has one, or
    the share ``gpus``. When its worker or machine is lost it goes on from its last checkpoint, up to ``max_retries``
    times. Students begin when all teachers are trained. The training set travels once to each machine.
    """
    check_distinct(specs)
    options |= {"build": build, "device": device, "progress": False}
    with ray_cluster(address):
        request = member_request(device, cpus=cpus, gpus=gpus, max_retries=max_retries)
        work = partial(_train, data=data, folder=Path(folder).absolute(), **options)
        results: dict[TrainSpec, TrainResult] = {}
        for students in (False, True):
            stage = [spec for spec in specs if spec.distilled == students]
            results |= zip(stage, for_each(work, stage, request, done=done), strict=True)
    return [results[spec] for spec in specs]


def member_request(
    device: str | None = None, /, *, cpus: int | None = None, gpus: float | None = None, max_retries: int = 3
) -> Request:
    """What a member asks for: a GPU where the cluster has one and nothing else was said, elsewhere as many CPUs as here."""
    wants_gpu = device.startswith("cuda") if device is not None else import_ray().cluster_resources().get("GPU", 0) > 0
    share = float(wants_gpu) if gpus is None else gpus
    return Request(cpus or (1 if share else torch.get_num_threads()), share, max_retries)


def _train(spec: TrainSpec, /, *, data: TrainingData, folder: Path, **options: Any) -> TrainResult:
    [result] = train_models([spec], data, folder, **options)
    return result
