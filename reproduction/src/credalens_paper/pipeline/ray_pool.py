"""The reproduction on Ray: networks that are missing are trained, used and evaluated at once, into the one store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, final

from credalens.engines.cluster import machines
from credalens_paper.pipeline.job import Job
from credalens_paper.pipeline.torch_engine import TorchEngine
from credalens_paper.ray_tasks import Done, for_each, network_request
from credalens_paper.results.store import Store

Work = Callable[[Job, Any], None]


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
        settings = (store, job.preset, data_folder, self.engine, job.threads or self.request.cpus, job.deadline)

        def log_lines(done: Done[Any, list[str]]) -> None:
            for line in done.result or ():
                job.log(line)

        for_each(partial(_do, work=work, settings=settings), items, request, done=log_lines)

    def about(self) -> dict[str, Any]:
        """How much each task has, and how large the cluster is."""
        return {"engine": "ray", "machines": len(machines()), "cpus": self.request.cpus, "gpus": self.request.gpus}


def _do(item: Any, /, *, work: Work, settings: tuple[Any, ...]) -> list[str]:
    store, preset, data_folder, engine, threads, deadline = settings
    lines: list[str] = []
    work(Job(store, preset, data_folder, TorchEngine(**engine), threads, deadline, lines.append), item)
    return lines
