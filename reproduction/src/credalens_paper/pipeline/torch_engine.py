"""Where networks come from: the training loop, on one device or on a pool of workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data import normalization
from credalens_paper.experiments.preparations import PREPARATIONS, TRAINED, Preparation
from credalens_paper.training.spec import TrainSpec

if TYPE_CHECKING:
    from credalens_paper.pipeline.ray_pool import RayPool
    from credalens_paper.training.device_images import TrainingData

Pixels = NDArray[np.uint8]


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
        from credalens_paper.training.devices import find_device, find_precision

        if side_by_side < 1:
            raise ValueError(f"at least one network is trained at a time, got side_by_side={side_by_side}")
        self.device = find_device(device)
        self.precision = find_precision("auto", self.device)
        self.side_by_side, self.compile, self.pool = side_by_side, compile, pool

    def trained(self, spec: TrainSpec, folder: Path, /) -> bool:
        """Whether the network is finished; an error where it was trained by another schedule than its spec means today."""
        from credalens_paper.training.network_folder import is_finished
        from credalens_paper.training.recipes.schedules import schedule_for

        asked = {"spec": spec.as_dict(), "schedule": schedule_for(spec).as_dict()}
        return is_finished(folder / spec.key, asked)

    def train(self, specs: Sequence[TrainSpec], data: TrainingData, folder: Path, /) -> None:
        """Train what is not finished, resuming what is half done; FloatingPointError, naming the network, if one diverges."""
        from credalens_paper.backbones import build_backbone
        from credalens_paper.training.train_networks import train_models

        train_models(
            specs,
            data,
            folder,
            build=build_backbone,
            device=self.device,
            side_by_side=self.side_by_side,
            precision=self.precision,
            progress=False,
            compile=self.compile,
        )

    def load(self, spec: TrainSpec, folder: Path, /) -> Any:
        """A finished network in evaluation mode on the device."""
        from credalens_paper.backbones import build_backbone
        from credalens_paper.training.networks import load_model

        return load_model(spec, folder, build=build_backbone, device=self.device)

    def predict(
        self, network: Any, spec: TrainSpec, images: Pixels, /, *, samples: int, seed: int, preparation: str = ""
    ) -> NDArray[np.float32]:
        """Probabilities (samples, images, classes) of images that are given as in training, or by a mistake."""
        from credalens_paper.training.predict_images import predict_members

        given = PREPARATIONS[preparation or TRAINED]
        options = self._options(spec, given)
        return predict_members(
            network, given.arrange(images), samples=samples, seed=seed, compile=self.compile, **options
        )

    def concentrations(
        self, network: Any, spec: TrainSpec, images: Pixels, /, *, preparation: str = ""
    ) -> NDArray[np.float32]:
        """Concentrations (images, classes)."""
        from credalens_paper.training.predict_images import predict_concentrations

        given = PREPARATIONS[preparation or TRAINED]
        return predict_concentrations(network, given.arrange(images), **self._options(spec, given))

    def training_record(self, spec: TrainSpec, folder: Path, /) -> dict[str, Any]:
        """What the training loop wrote down."""
        note = json.loads((folder / spec.key / "spec.json").read_text(encoding="utf-8"))
        history = json.loads((folder / spec.key / "history.json").read_text(encoding="utf-8"))
        seconds = round(sum(record["seconds"] for record in history), 3)
        start = note["spec"].get("pretrained")
        provenance = note["provenance"] if start is None else {**note["provenance"], "pretrained": start}
        return {"schedule": note["schedule"], "seconds": seconds, "provenance": provenance}

    def about(self) -> dict[str, Any]:
        """The device, the precision and the pool, for the provenance."""
        from credalens_paper.training.devices import device_name

        device = {"device": device_name(self.device), "precision": self.precision, "side_by_side": self.side_by_side}
        return device if self.pool is None else {**device, **self.pool.about()}

    def _options(self, spec: TrainSpec, given: Preparation) -> dict[str, Any]:
        mean, std = given.statistics(normalization(spec.data))
        return {
            "mean": mean,
            "std": std,
            "image_size": spec.image_size,
            "device": self.device,
            "precision": self.precision,
        }
