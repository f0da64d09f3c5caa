"""From a spec to its network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from credalens.bayes import to_bayesian
from credalens.bayes.layers import INITIAL_STD
from credalens_paper.training.devices import find_device, placed
from credalens_paper.training.network_folder import MODEL, is_finished, read_tensors
from credalens_paper.training.randomness import INITIAL, derived_seed
from credalens_paper.training.spec import ESTIMATORS, TrainSpec

Build = Callable[..., nn.Module]
"""``build(name, *, classes, width, image_size, pretrained, seed)``, such as ``credalens_paper.backbones.build_backbone``: a
network from images (n, 3, h, w) to logits (n, classes) whose first weights depend on the seed alone."""


def make_network(
    spec: TrainSpec, build: Build, device: torch.device, /, *, initial_std: float | None = None
) -> nn.Module:
    """The network of a spec with its first weights; Bayesian ones have the same first means as the standard one."""
    if spec.pretrained is not None and spec.weights is None:
        raise ValueError(f"{spec.key} starts from weights {spec.pretrained}; name their folder in the spec's weights.")
    network = build(
        spec.backbone,
        classes=spec.classes,
        width=spec.width,
        image_size=spec.image_size,
        pretrained=spec.weights,
        seed=derived_seed(spec.seed, INITIAL),
    )
    if spec.bayesian:
        network = to_bayesian(network, estimator=ESTIMATORS[spec.method], initial_std=initial_std or INITIAL_STD)
    return placed(network, device)


def load_model(
    spec: TrainSpec, folder: str | Path, /, *, build: Build, device: str | torch.device | None = None
) -> nn.Module:
    """A trained network out of the folder that :func:`train_models` wrote, in evaluation mode."""
    path = Path(folder) / spec.key
    if not is_finished(path, {"spec": spec.as_dict()}):
        raise FileNotFoundError(f"{path / MODEL} does not exist: train {spec.key} first, or look into another folder.")
    network = make_network(spec, build, find_device(device))
    network.load_state_dict(read_tensors(path / MODEL)[0])
    return network.eval()
