"""Where networks come from: the training loop on one device, or on a pool of workers of Ray, all into the one store."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from credalens.engines.cluster import machines
from credalens_paper.backbones import build_backbone
from credalens_paper.data import normalization
from credalens_paper.experiments.cell_keys import PREPARATIONS, TRAINED
from credalens_paper.pipeline.job import Job
from credalens_paper.ray_tasks import Done, for_each, network_request
from credalens_paper.results.store import Store
from credalens_paper.training.devices import TrainingData, device_name, find_device, find_precision
from credalens_paper.training.network_folder import is_finished, load_model, predict_images
from credalens_paper.training.spec import TrainSpec, schedule_for
from credalens_paper.training.train_networks import train_models

Pixels = NDArray[np.uint8]
Work = Callable[[Job, Any], None]


class TorchEngine:
    """The training loop of `credalens_paper.training` on one device; by default CUDA where there is one.

    `compile` fuses the steps of training, and the predictions of Bayesian networks, with torch.compile: half a minute for
    each kind of network, once, and less time for each of many. A `pool` of workers trains, predicts and evaluates in other
    processes.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        side_by_side: int = 1,
        compile: bool = False,  # noqa: A002  (torch's word for it)
        pool: RayPool | None = None,
    ) -> None:
        if side_by_side < 1:
            raise ValueError(f"at least one network is trained at a time, got side_by_side={side_by_side}")
        self.device = find_device(device)
        self.precision = find_precision("auto", self.device)
        self.side_by_side, self.compile, self.pool = side_by_side, compile, pool

    def trained(self, spec: TrainSpec, folder: Path, /) -> bool:
        """Whether the network is finished; an error where it was trained by another schedule than its spec means today."""
        asked = {"spec": spec.as_dict(), "schedule": schedule_for(spec).as_dict()}
        return is_finished(folder / spec.key, asked)

    def train(self, specs: Sequence[TrainSpec], data: TrainingData, folder: Path, /) -> None:
        """Train what is not finished, resuming what is half done; FloatingPointError, naming the network, if one diverges."""
        where: dict[str, Any] = {"device": self.device, "precision": self.precision, "compile": self.compile}
        options = {**where, "side_by_side": self.side_by_side, "progress": False}
        train_models(specs, data, folder, build=build_backbone, **options)

    def load(self, spec: TrainSpec, folder: Path, /) -> Any:
        """A finished network in evaluation mode on the device."""
        return load_model(spec, folder, build=build_backbone, device=self.device)

    def predict(
        self,
        network: Any,
        spec: TrainSpec,
        images: Pixels,
        /,
        *,
        samples: int = 1,
        seed: int = 0,
        preparation: str = "",
    ) -> NDArray[np.float32]:
        """Probabilities (samples, images, classes) of images that are given as in training, or by a mistake.

        Of a distilled network the concentrations, (1, images, classes).
        """
        how = PREPARATIONS[preparation or TRAINED]
        mean, std = how.statistics(normalization(spec.data))
        options: dict[str, Any] = {"mean": mean, "std": std, "image_size": spec.image_size, "device": self.device}
        options |= {"precision": self.precision, "compile": self.compile, "concentrations": spec.distilled}
        return predict_images(network, how.arrange(images), samples=samples, seed=seed, **options)

    def training_record(self, spec: TrainSpec, folder: Path, /) -> dict[str, Any]:
        """What the training loop wrote down."""
        note, history = (
            json.loads((folder / spec.key / name).read_text(encoding="utf-8")) for name in ("spec.json", "history.json")
        )
        seconds = round(sum(record["seconds"] for record in history), 3)
        start = note["spec"].get("pretrained")
        provenance = note["provenance"] if start is None else {**note["provenance"], "pretrained": start}
        return {"schedule": note["schedule"], "seconds": seconds, "provenance": provenance}

    def about(self) -> dict[str, Any]:
        """The device, the precision and the pool, for the provenance."""
        device = {"device": device_name(self.device), "precision": self.precision, "side_by_side": self.side_by_side}
        return device if self.pool is None else {**device, **self.pool.about()}


@final
class RayPool:
    """Tasks of the Ray that this process is connected to, for ``TorchEngine(pool=...)``.

    A network takes ``cpus`` and ``gpus`` while it is trained or used, and ``cpus`` while it is evaluated. The store, the
    data folder and pretrained weights must be the same on all machines.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        compile: bool = False,  # noqa: A002  (torch's word for it)
        cpus: int | None = None,
        gpus: float | None = None,
    ) -> None:
        self.engine: dict[str, Any] = {"device": device, "compile": compile}
        self.request = network_request(device, cpus=cpus, gpus=gpus)

    def each(self, job: Job, work: Work, items: Sequence[Any], /, *, on_device: bool) -> None:
        """Call ``work(job, item)`` for each item in a task, with a job made like this one; ends when all have ended."""
        request = self.request if on_device else replace(self.request, gpus=0)
        data_folder = None if job.data_folder is None else Path(job.data_folder).absolute()
        store = Store(job.store.folder.absolute(), dtype=job.store.dtype.name)
        preset, engine, threads, deadline = job.preset, self.engine, job.threads or self.request.cpus, job.deadline

        def do(item: Any) -> list[str]:
            lines: list[str] = []
            work(Job(store, preset, data_folder, TorchEngine(**engine), threads, deadline, lines.append), item)
            return lines

        def log_lines(done: Done[Any, list[str]]) -> None:
            for line in done.result or ():
                job.log(line)

        for_each(do, items, request, done=log_lines)

    def about(self) -> dict[str, Any]:
        """How much each task has, and how large the cluster is."""
        return {"engine": "ray", "machines": len(machines()), "cpus": self.request.cpus, "gpus": self.request.gpus}
