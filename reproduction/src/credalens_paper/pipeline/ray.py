"""The reproduction on Ray: networks that are missing are trained, used and evaluated at once, into the one store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

from credalens.engines.cluster import machines
from credalens.engines.tasks import Done, for_each
from credalens_paper.experiments.presets import Preset
from credalens_paper.pipeline.engine import TorchEngine
from credalens_paper.pipeline.images import Images
from credalens_paper.pipeline.models import Deadline, Models
from credalens_paper.results.store import Store
from credalens_paper.training.ray import member_request

__all__ = ["RayCrew"]

Work = Callable[[Models, Any], None]


@final
class RayCrew:
    """Tasks of the Ray that this process is connected to, for ``TorchEngine(crew=...)``.

    A network takes ``cpus`` and ``gpus`` while it is trained or used, and ``cpus`` while it is evaluated. The store, the
    data folder and pretrained weights must be the same on all machines.
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        precision: str = "auto",
        compile: bool = False,  # noqa: A002  (torch's word for it)
        cpus: int | None = None,
        gpus: float | None = None,
        max_retries: int = 3,
    ) -> None:
        self.engine: dict[str, Any] = {"device": device, "precision": precision, "compile": compile}
        self.request = member_request(device, cpus=cpus, gpus=gpus, max_retries=max_retries)
        self.threads = self.request.cpus

    def each(self, models: Models, work: Work, items: Sequence[Any], /, *, on_device: bool) -> None:
        """Do the work for each item in a task; what it logs is told when it ends."""
        site = _Site.of(models, self.engine)
        request = self.request if on_device else replace(self.request, gpus=0)

        def tell(one: Done[Any, list[str]]) -> None:
            for line in one.result or ():
                models.log(line)

        for_each(partial(_do, work=work, site=site), items, request, done=tell)

    def about(self) -> dict[str, Any]:
        """How much each task has, and how large the cluster is."""
        return {"engine": "ray", "machines": len(machines()), "cpus": self.request.cpus, "gpus": self.request.gpus}


@dataclass(frozen=True)
class _Site:
    """What a task needs to make the same models: paths and settings, and the hour at which time is up."""

    folder: Path
    dtype: str
    preset: Preset
    data: Path | None
    engine: dict[str, Any]
    limit: float | None
    ends: float

    @classmethod
    def of(cls, models: Models, engine: dict[str, Any], /) -> _Site:
        deadline, images = models.deadline, models.images
        passed = time.monotonic() - deadline.begun
        return cls(
            folder=models.store.folder.absolute(),
            dtype=models.store.dtype.name,
            preset=models.preset,
            data=None if images.folder is None else Path(images.folder).absolute(),
            engine=engine,
            limit=deadline.seconds,
            ends=time.time() + (deadline.seconds or 0) - passed,
        )

    def models(self, log: Callable[[str], None], /) -> Models:
        """Clocks of two machines agree on the hour only, so the deadline is moved to this one's clock."""
        store = Store(self.folder, dtype=self.dtype)
        begun = time.monotonic() + (self.ends - time.time()) - (self.limit or 0)
        images = Images(store, self.preset, self.data)
        return Models(store, self.preset, images, TorchEngine(**self.engine), Deadline(self.limit, begun), log)


def _do(item: Any, /, *, work: Work, site: _Site) -> list[str]:
    lines: list[str] = []
    work(site.models(lines.append), item)
    return lines
