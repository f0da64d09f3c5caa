"""An executor for scoring on Ray: each part is read, scored and written by one worker, and only its report travels."""

from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Final

from credalens.checks.options import check_count, check_threads
from credalens.engines import cluster
from credalens.scoring import FolderSummary, score_folder
from credalens.scoring.job import PartReport, ScoringJob, score_part

SETTINGS: Final = {
    "enable_progress_bars": False,
    "print_on_execution_start": False,
    "op_resource_reservation_enabled": False,  # else a part waits until Ray Data has heard that a CPU is free
    "execution_no_progress_timeout_s": -1,  # a part lasts as long as it lasts
}
MOST_BLOCKS: Final = 10_000  # more parts than that share tasks, so that the driver's book-keeping stays small


def score_folder_on_ray(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], target: str | os.PathLike[str], /, *,
    address: str | None = None, workers: int | None = None, threads: int = 1, **options: Any,
) -> FolderSummary:  # fmt: skip
    """``credalens.scoring.score_folder`` with its parts spread over a Ray cluster; it writes the same bytes.

    Use it if one machine is too slow; ``credalens score --engine ray`` is the same on the command line.

    ``address`` is that of a running cluster; without one, and without $RAY_ADDRESS, a Ray is started on this machine.
    At most ``workers`` parts are worked on at a time (by default as many as there are CPUs), with ``threads`` CPUs each.
    All machines must reach the paths. If a worker or a machine is lost, another one does its part again.
    """
    check_threads(threads)
    cpus = None if workers is None else check_count(workers, "workers") * threads
    limit = None if cluster.is_ours(address) else workers  # ours has no more CPUs than that
    with cluster.ray_cluster(address, workers=cpus, object_store=cluster.OBJECT_STORE):
        most = max((machine.get("CPU", 0) for machine in cluster.machines()), default=0)
        if 0 < most < threads:  # Ray would wait for ever; for the first machine of a cluster that grows it may
            raise ValueError(
                f"no machine of the cluster has {threads} CPUs for --threads; the largest has {most:g}. Ask for less."
            )
        return score_folder(sources, target, threads=threads, executor=partial(_score_parts, workers=limit), **options)


def _score_parts(job: ScoringJob, parts: Sequence[int], /, *, workers: int | None) -> Iterator[PartReport]:
    """Score parts on the Ray that this process is connected to, at most ``workers`` at a time.

    All parts are handed to Ray at once where its CPUs are the only limit: a worker then never waits for the driver.
    """
    _warm_up(job, len(parts) if workers is None else min(workers, len(parts)))
    data = importlib.import_module("ray.data")
    with _set_up(data):
        numbers = data.from_items([{"part": n} for n in parts], override_num_blocks=min(len(parts), MOST_BLOCKS))
        pool, cpus = data.TaskPoolStrategy(size=workers), job.scorer.threads or 1
        reports = numbers.map_batches(partial(_score, job), batch_size=1, num_cpus=cpus, compute=pool)
        for row in reports.iter_rows():
            yield PartReport(**json.loads(row["report"]))


def _warm_up(job: ScoringJob, most: int) -> None:
    """Let the workers load what they need while the driver does the same."""
    ray, threads = cluster.import_ray(), job.scorer.threads or 1
    free = int(ray.available_resources().get("CPU", 0)) // threads
    load = ray.remote(num_cpus=threads, max_retries=0, scheduling_strategy="SPREAD")(_load)
    shared = ray.put(job)  # once for each machine
    for _ in range(min(free, most)):
        load.remote(shared)


def _load(job: ScoringJob) -> None:
    with suppress(Exception):  # the first part will tell
        importlib.import_module("ray.data")
        job.scorer.rehearse()


def _score(job: ScoringJob, batch: dict[str, Any]) -> dict[str, list[str]]:
    """Parts that an earlier attempt had finished before it was lost are found, not made again."""
    retries, reports = cluster.attempts_before(), []
    for part in map(int, batch["part"]):
        report = (job.finished_part(part) if retries else None) or score_part(job, part)
        reports.append(json.dumps(asdict(replace(report, worker=cluster.worker_name(), retries=retries))))
    return {"report": reports}


@contextmanager
def _set_up(data: Any) -> Iterator[None]:
    """Ray Data without its own bars, lines and limits; ours shows the progress."""
    context, logger = data.DataContext.get_current(), logging.getLogger("ray.data")
    before = {name: value for name, value in vars(context).items() if name in SETTINGS}
    level = logger.level
    for name in before:
        setattr(context, name, SETTINGS[name])
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        for name, value in before.items():
            setattr(context, name, value)
