"""The first two steps, and where networks come from.

Networks that are not in the store are trained, then predict the sets that are asked for, once: by the training loop on one
device, or on a pool of workers of Ray, all into the one store.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from credalens import MemberSummary
from credalens.arrays import NUMPY
from credalens.checks.options import count_text
from credalens.engines.cluster import machines
from credalens_paper.backbones import build_backbone
from credalens_paper.data import normalization
from credalens_paper.experiments.cell_keys import PREPARATIONS, TRAINED
from credalens_paper.experiments.ensembles import Ensemble, EvaluationSet
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


Array = NDArray[Any]
Sets = Mapping[EvaluationSet, Sequence[int]]
"""Evaluation sets, each with the numbers of samples that are asked for: the most to store, the most to sum."""


def is_diverged(job: Job, spec: TrainSpec, /) -> bool:
    """Whether its loss, or that of a teacher, became NaN; the file named in the message can be deleted to try again."""
    return any((job.store.folder / _mark(network)).is_file() for network in (spec, *spec.teacher_specs()))


def is_whole(job: Job, ensemble: Ensemble, /) -> bool:
    """Whether none of its networks diverged."""
    return not any(is_diverged(job, spec) for spec in ensemble.specs)


def train(job: Job, specs: Iterable[TrainSpec], /) -> None:
    """Train the missing ones: teachers first, networks of one kind side by side; all at once where there is a pool."""
    wanted = {network: None for spec in specs for network in (*spec.teacher_specs(), spec)}
    missing = [spec for spec in wanted if not is_diverged(job, spec) and not job.engine.trained(spec, job.store.models)]
    if job.engine.pool is not None:
        for students in (False, True):
            alone = [[spec] for spec in missing if spec.distilled == students]
            job.engine.pool.each(job, train_side_by_side, alone, on_device=True)
        return
    for _, group in groupby(sorted(missing, key=_kind), key=_kind):
        alike, count = list(group), job.engine.side_by_side
        for start in range(0, len(alike), count):
            train_side_by_side(job, alike[start : start + count])


def train_side_by_side(job: Job, specs: list[TrainSpec], /) -> None:
    """Train networks of one kind; one that diverges is marked, and the others are trained without it."""
    job.deadline.check()
    left = [spec for spec in specs if not is_diverged(job, spec)]
    while left:
        job.log(f"training {', '.join(spec.key for spec in left)}")
        try:
            data = job.images.training(left[0].data, left[0].image_size)
            return job.engine.train(left, data, job.store.models)
        except FloatingPointError as error:
            at_fault = [spec for spec in left if spec.key in str(error)]
            if not at_fault:
                raise
            mark = _mark(at_fault[0])
            job.store.write_json(mark, {"message": str(error)})
            job.log(f"{error} Its runs are left out; delete {job.store.folder / mark} to try again.")
            left.remove(at_fault[0])
    return None


def _kind(spec: TrainSpec) -> tuple[bool, str, int, str, str]:
    return spec.distilled, spec.data, spec.image_size, spec.backbone, spec.method


def _mark(spec: TrainSpec) -> str:
    return f"diverged/{spec.key}.json"


def _record(spec: TrainSpec) -> str:
    return f"predictions/{spec.key}/training.json"


def is_summed(job: Job, ensemble: Ensemble, /) -> bool:
    """Whether only sums over its samples are stored."""
    return ensemble.samples > job.preset.keep


def is_predicted(job: Job, spec: TrainSpec, images: EvaluationSet, samples: int, /) -> bool:
    """Whether so many predictions are stored, or their sums where there are too many to keep."""
    if samples > job.preset.keep:
        summary = stored_summary(job, spec, images)
        return summary is not None and summary.count >= samples
    return job.store.predictions(spec.key, images.key, samples) is not None


def missing_predictions(
    job: Job, wanted: Iterable[tuple[Ensemble, Iterable[EvaluationSet]]], /
) -> dict[TrainSpec, dict[EvaluationSet, list[int]]]:
    """What is not stored of these ensembles on these sets, network by network."""
    most: dict[tuple[TrainSpec, EvaluationSet, bool], int] = {}
    for ensemble, sets in wanted:
        for spec in ensemble.specs:
            for images in sets:
                key = (spec, images, is_summed(job, ensemble))
                most[key] = max(most.get(key, 0), ensemble.samples)
    missing: dict[TrainSpec, dict[EvaluationSet, list[int]]] = {}
    for (spec, images, _), samples in most.items():
        if not is_predicted(job, spec, images, samples):
            missing.setdefault(spec, {}).setdefault(images, []).append(samples)
    return missing


def predict(job: Job, missing: Mapping[TrainSpec, Sets], /) -> None:
    """Predict with all networks that are trained."""
    trained = [(spec, sets) for spec, sets in missing.items() if not is_diverged(job, spec)]
    if job.engine.pool is not None:
        job.engine.pool.each(job, predict_network, trained, on_device=True)
    else:
        for item in trained:
            predict_network(job, item)


def predict_network(job: Job, item: tuple[TrainSpec, Sets], /) -> None:
    """Store the predictions of one network on some sets."""
    spec, sets = item
    job.deadline.check()
    network = job.engine.load(spec, job.store.models)
    job.store.write_json(_record(spec), job.engine.training_record(spec, job.store.models))
    job.log(f"predicting {spec.key} on {count_text(len(sets), 'set')}")
    if job.images.reason(spec.data, pixels=spec.image_size) is None:
        job.images.labels(spec.data)  # stored, so that predictions are evaluated where there are no data
    job.images.prepare(sets, spec.image_size)
    for images, counts in sets.items():
        job.deadline.check()
        given = (network, spec, job.images.test(images, spec.image_size))
        for samples in counts:
            if samples > job.preset.keep:
                _sum_samples(job, given, images, samples)
            else:
                _store_samples(job, given, images, samples)


Given = tuple[Any, TrainSpec, Array]  # A network, its spec and the images that it is given


def _draw_group(job: Job, given: Given, images: EvaluationSet, group: int) -> Array:
    """Samples under a seed of their own: more samples later leave the first groups as they are."""
    seed = zlib.crc32(f"{given[1].key} {images.key} {group}".encode())
    return job.engine.predict(*given, samples=job.preset.draws, seed=seed, preparation=images.preparation)


def _store_samples(job: Job, given: Given, images: EvaluationSet, samples: int) -> None:
    store, engine, spec, how = job.store, job.engine, given[1], images.preparation
    if not spec.bayesian:
        predictions = engine.predict(*given, preparation=how)
    else:
        draws, parts = job.preset.draws, []
        for start in range(0, samples, draws):
            stored = store.predictions(spec.key, images.key, start + draws)
            parts.append(stored[start:] if stored is not None else _draw_group(job, given, images, start // draws))
        predictions = np.concatenate(parts)
    # Concentrations reach beyond the range of float16.
    dtype = "float32" if spec.distilled else None
    store.save_predictions(spec.key, images.key, predictions, dtype=dtype, engine=engine.about())


def _sum_samples(job: Job, given: Given, images: EvaluationSet, samples: int) -> None:
    """Sums over many samples, stored as they grow: a thousand samples need the memory of a few."""
    summary = stored_summary(job, given[1], images) or MemberSummary()
    while summary.count < samples:
        job.deadline.check()
        drawn = _draw_group(job, given, images, summary.count // job.preset.draws)
        summary.update(drawn[: samples - summary.count].astype(np.float64))
        bounds = {"lower": summary.lower, "upper": summary.upper}
        sums = {"probability": summary.sum_probability, "entropy": summary.sum_entropy}
        job.store.save_summary(given[1].key, images.key, {"count": np.asarray(summary.count), **bounds, **sums})


def stored_summary(job: Job, spec: TrainSpec, images: EvaluationSet, /) -> MemberSummary | None:
    """Many samples of one network, from their sums; None where there are none."""
    if (sums := job.store.summary(spec.key, images.key)) is None:
        return None
    lower, upper, probability, entropy = (sums[name] for name in ("lower", "upper", "probability", "entropy"))
    return MemberSummary(int(sums["count"]), lower, upper, probability, entropy, NUMPY)


def training_record(job: Job, spec: TrainSpec, /) -> dict[str, Any] | None:
    """How a network was trained, as far as it is known here, with the device that it predicted on."""
    record = job.store.read_json(_record(spec))
    if record is None:
        return None
    folder = (job.store.folder / _record(spec)).parent
    notes = [job.store.read_json(str(path.relative_to(job.store.folder))) for path in sorted(folder.glob("*.json"))]
    device = next((note["engine"]["device"] for note in notes if note.get("engine")), None)
    return dict(record) if device is None else {**record, "provenance": {**record["provenance"], "device": device}}
