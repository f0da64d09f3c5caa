"""The networks of one method on one data set: trained into a folder, then applied to the test split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from credalens.checks.options import check_choice
from credalens.engines.cluster import ray_cluster
from credalens_paper.backbones import IMAGE, TEXT, build_backbone
from credalens_paper.backbones.pretrained import open_pretrained
from credalens_paper.data import ImageSet, has_texts, normalization
from credalens_paper.ray_tasks import Done, for_each, network_request
from credalens_paper.training.device_images import TrainingData
from credalens_paper.training.dirichlet import expected_probability
from credalens_paper.training.networks import load_model
from credalens_paper.training.predict_images import predict_concentrations, predict_members
from credalens_paper.training.spec import DISTILLED, ESTIMATORS, METHODS, TrainSpec
from credalens_paper.training.train_networks import TrainResult, train_models, train_models_on_ray

Probabilities = NDArray[np.float32]


@dataclass(frozen=True)
class RayTasks:
    """A Ray cluster, what each task gets of it, and what is called when one ends."""

    address: str | None
    cpus: int | None
    gpus: float | None
    done: Callable[[Done[TrainSpec, Any]], None]

    @property
    def share(self) -> dict[str, Any]:
        """CPUs and GPUs of a task."""
        return {"cpus": self.cpus, "gpus": self.gpus}


@dataclass(frozen=True)
class Ensemble:
    """Trained networks and, unless there is no test split, what each predicts for it: (samples, images, classes)."""

    networks: list[TrainResult]
    predictions: list[Probabilities]

    def members(self) -> Probabilities:
        """The predictions to use together: of all networks, or of the student alone."""
        pairs = zip(self.networks, self.predictions, strict=True)
        return np.concatenate([probs for network, probs in pairs if network.spec.distilled] or self.predictions)


def ensemble_specs(method: str, members: int, /, **fields: Any) -> list[TrainSpec]:
    """The networks of an "ensemble", of "bnnr" or "bnnf" from the seeds 0 to ``members`` - 1, or a student and its teachers.

    The field ``pretrained`` is here the folder of the weights to start from.

    >>> fields = {"data": "cifar10", "backbone": "vgg16", "schedule": "fast", "classes": 10}
    >>> [spec.method for spec in ensemble_specs("edd", 2, **fields)]
    ['snn', 'snn', 'edd']
    """
    check_choice(method, ("ensemble", *METHODS[1:]), "method")
    check_choice(fields["backbone"], (TEXT,) if has_texts(fields["data"]) else IMAGE, "backbone")
    if fields.get("pretrained") is not None:
        weights = open_pretrained(fields["pretrained"], fields["backbone"])
        fields |= {"pretrained": weights.digest, "weights": weights.folder}
    kind = method if method in ESTIMATORS else "snn"
    specs = [TrainSpec(method=kind, seed=seed, **fields) for seed in range(members)]
    if method in DISTILLED:
        specs.append(TrainSpec(method=method, seed=0, teachers=tuple(range(members)), **fields))
    return specs


def train_ensemble(
    specs: Sequence[TrainSpec],
    images: ImageSet,
    test: ImageSet | None,
    folder: Path,
    /,
    *,
    samples: int = 5,
    device: str | None = None,
    precision: str = "auto",
    ray: RayTasks | None = None,
    **options: Any,
) -> Ensemble:
    """Train networks, here or on Ray, and predict the test images with each; ``options`` are those of ``train_models``."""
    mean, std = normalization(images.name)
    data = TrainingData(images.images, images.labels, mean, std)
    where: dict[str, Any] = {"device": device, "precision": precision}
    options |= {"build": build_backbone, **where}
    with nullcontext() if ray is None else ray_cluster(ray.address):
        train = train_models if ray is None else partial(train_models_on_ray, **ray.share, done=ray.done)
        networks = train(specs, data, folder, **options)
        if test is None:
            return Ensemble(networks, [])
        predict = partial(predict_network, folder=folder.absolute(), images=test, samples=samples, **where)
        if ray is None:
            return Ensemble(networks, [predict(spec) for spec in specs])
        return Ensemble(networks, for_each(predict, specs, network_request(device, **ray.share), done=ray.done))


def predict_network(
    spec: TrainSpec, /, *, folder: Path, images: ImageSet, samples: int, device: str | None, precision: str
) -> Probabilities:
    """Class distributions (members, images, classes) by a trained network out of its folder.

    A Bayesian network gives ``samples`` members, a standard one itself, a distilled one the mean of its Dirichlet.
    """
    network = load_model(spec, folder, build=build_backbone, device=device)
    mean, std = normalization(spec.data)
    options: dict[str, Any] = {"mean": mean, "std": std, "image_size": spec.image_size}
    options |= {"device": device, "precision": precision}
    if spec.distilled:
        concentrations = predict_concentrations(network, images.images, **options)
        return expected_probability(torch.from_numpy(concentrations)).numpy()[None]
    count = samples if spec.bayesian else 1
    return predict_members(network, images.images, samples=count, seed=spec.seed, **options)
