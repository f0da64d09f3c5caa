"""Where ``credalens train`` trains and predicts: in this process, or in tasks of a Ray cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import typer

from credalens.cli.progress import progress_bar

if TYPE_CHECKING:
    from credalens_paper.training.run import TrainingData, TrainResult, TrainSpec

__all__ = ["LocalTrainer", "RayTrainer"]

Predict = Callable[["TrainSpec"], Any]


@final
class LocalTrainer:
    """This process and its device."""

    def __init__(self, *, side_by_side: int, shown: bool) -> None:
        self.side_by_side, self.shown = side_by_side, shown

    def train(self, specs: Sequence[TrainSpec], data: TrainingData, out: Path, /, **options: Any) -> list[TrainResult]:
        """Side by side on the one device, a bar or a line for each network."""
        from credalens_paper.backbones import build_backbone
        from credalens_paper.training.run import train_models

        log = _log if self.shown and not sys.stderr.isatty() else None
        options |= {"side_by_side": self.side_by_side, "progress": self.shown, "log": log}
        return train_models(specs, data, out, build=build_backbone, **options)

    def predict(self, predict: Predict, specs: Sequence[TrainSpec], /) -> list[Any]:
        """One after the other."""
        return [predict(spec) for spec in specs]

    def about(self) -> dict[str, Any]:
        """Nothing to add."""
        return {}


@final
class RayTrainer:
    """A Ray cluster, one task for each network."""

    def __init__(self, *, cpus: int | None, gpus: float | None, shown: bool) -> None:
        self.asked: dict[str, Any] = {"cpus": cpus, "gpus": gpus}
        self.shown, self.device = shown, None
        self._retries, self._workers = 0, set[str]()

    @classmethod
    @contextmanager
    def on(cls, address: str | None, /, **options: Any) -> Iterator[RayTrainer]:
        """Connected to a cluster while the block lasts."""
        from credalens.engines.cluster import ray_cluster

        with ray_cluster(address):
            yield cls(**options)

    def train(self, specs: Sequence[TrainSpec], data: TrainingData, out: Path, /, **options: Any) -> list[TrainResult]:
        """As many at a time as the cluster has room for."""
        from credalens_paper.backbones import build_backbone
        from credalens_paper.training.ray import train_models_on_ray

        self.device = options["device"]
        with self._heard("training", len(specs)) as done:
            return train_models_on_ray(specs, data, out, build=build_backbone, done=done, **self.asked, **options)

    def predict(self, predict: Predict, specs: Sequence[TrainSpec], /) -> list[Any]:
        """As many at a time as the cluster has room for, on the kind of device they were trained on."""
        from credalens.engines.tasks import for_each
        from credalens_paper.training.ray import member_request

        with self._heard("predicting", len(specs)) as done:
            return for_each(predict, specs, member_request(self.device, **self.asked), done=done)

    def about(self) -> dict[str, Any]:
        """Workers that took part, and tasks that were begun again because one was lost."""
        return {"workers": len(self._workers), "retries": self._retries}

    @contextmanager
    def _heard(self, what: str, count: int) -> Iterator[Callable[[Any], None]]:
        with progress_bar(hidden=not self.shown) as progress:
            ended = 0
            progress(what, 0, count)

            def done(one: Any) -> None:
                nonlocal ended
                ended += 1
                self._retries += one.retries
                self._workers.add(one.worker)
                progress(what, ended, count)
                if self.shown and not sys.stderr.isatty():
                    _log(f"{what} {one.item.key}: done, {one.seconds:.1f} s ({ended} of {count})")

            yield done


def _log(line: str) -> None:
    typer.echo(line, err=True)
