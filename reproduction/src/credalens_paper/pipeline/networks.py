"""The first two steps: networks that are not in the store are trained, then predict the sets that are asked for, once."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens import MemberSummary
from credalens.arrays import NUMPY
from credalens.checks.options import count_text
from credalens_paper.experiments.ensembles import Ensemble, EvaluationSet
from credalens_paper.pipeline.job import Job
from credalens_paper.training.spec import TrainSpec

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
