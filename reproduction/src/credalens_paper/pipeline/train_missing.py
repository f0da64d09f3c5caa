"""The first step: train the networks that are not in the store."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from credalens_paper.experiments.ensembles import Ensemble, spec_key
from credalens_paper.pipeline.job import Job
from credalens_paper.training.spec import TrainSpec


def is_trained(job: Job, spec: TrainSpec, /) -> bool:
    """Whether a network is finished."""
    return job.engine.trained(spec, job.store.models)


def is_diverged(job: Job, spec: TrainSpec, /) -> bool:
    """Whether its loss, or that of a teacher, became NaN; the file named in the message can be deleted to try again."""
    return any((job.store.folder / _mark(network)).is_file() for network in (spec, *spec.teacher_specs()))


def is_whole(job: Job, ensemble: Ensemble, /) -> bool:
    """Whether none of its networks diverged."""
    return not any(is_diverged(job, spec) for spec in ensemble.specs)


def train(job: Job, specs: Iterable[TrainSpec], /) -> None:
    """Train the missing ones: teachers first, networks of one kind side by side; all at once where there is a pool."""
    wanted = {network: None for spec in specs for network in (*spec.teacher_specs(), spec)}
    missing = [spec for spec in wanted if not is_diverged(job, spec) and not is_trained(job, spec)]
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
        job.log(f"training {', '.join(map(spec_key, left))}")
        try:
            data = job.images.training(left[0].data, left[0].image_size)
            return job.engine.train(left, data, job.store.models)
        except FloatingPointError as error:
            at_fault = [spec for spec in left if spec_key(spec) in str(error)]
            if not at_fault:
                raise
            job.store.write_json(_mark(at_fault[0]), {"message": str(error)})
            mark = job.store.folder / _mark(at_fault[0])
            job.log(f"{error} Its runs are left out; delete {mark} to try again.")
            left.remove(at_fault[0])
    return None


def _kind(spec: TrainSpec) -> tuple[bool, str, int, str, str]:
    return spec.distilled, spec.data, spec.image_size, spec.backbone, spec.method


def _mark(spec: TrainSpec) -> str:
    return f"diverged/{spec_key(spec)}.json"
