"""Networks and data small enough to train in a test."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from credalens_paper.backbones.lite import DepthwiseConv2d
from credalens_paper.training.devices import TrainingData
from credalens_paper.training.network_folder import load_model
from credalens_paper.training.spec import TrainSpec
from credalens_paper.training.train_networks import train_models

STATISTICS = {"mean": (0.5, 0.4, 0.3), "std": (0.25, 0.2, 0.3)}
SPEC = TrainSpec("blobs", "convnet", "snn", seed=0, schedule="smoke", classes=3, image_size=8)


def build(name, *, classes, width, image_size, pretrained, seed):
    """Two convolutions with batch normalisation, "depthwise" with one more; "dropout" draws from torch's global generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        dropout = [nn.Dropout(0.2)] if name == "dropout" else []
        filters = [DepthwiseConv2d(8, 3, padding=1)] if name == "depthwise" else []
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), *filters,
            nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), *dropout, nn.Linear(8, classes),
        )  # fmt: skip


def network():
    """The tiny network with its first weights."""
    return build("convnet", classes=3, width=1.0, image_size=8, pretrained=None, seed=0)


def blobs(count=256, size=8, seed=0):
    """Three classes of images, each bright in a channel of its own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    images = rng.integers(0, 120, (count, size, size, 3))
    images[np.arange(count), :, :, labels] += 100
    return TrainingData(images.astype(np.uint8), labels, **STATISTICS)


def member(**changes):
    """The tiny spec with other fields."""
    return replace(SPEC, **changes)


def weights(model):
    """Everything a network has learnt, as one dictionary of arrays."""
    return {name: value.numpy() for name, value in model.state_dict().items()}


def assert_equal_weights(one, other):
    """The same network, bit for bit."""
    one, other = weights(one), weights(other)
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def same_threads() -> dict[str, str]:
    """The environment of a process that is to add up in the same order: with as many threads as torch has here."""
    return os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}


STUDENT = member(method="edd", seed=5, teachers=(0, 1))
EVERY = [
    SPEC,
    member(seed=1),
    member(method="bnnr"),
    member(method="bnnf"),
    STUDENT,
    replace(STUDENT, method="edd_fair"),
]
METHODS = [member(backbone="dropout"), member(method="bnnr"), member(method="bnnf"), STUDENT]


def train(specs, folder, *, data=None, build=build, **options):
    return train_models(specs, data or blobs(), folder, build=build, device="cpu", progress=False, **options)


def load(spec, folder):
    return load_model(spec, folder, build=build, device="cpu")


def files(folder, spec):
    return {path.name for path in (Path(folder) / spec.key).iterdir()}


class Stop(Exception):  # noqa: N818  (a signal of these tests)
    """Raised in the middle of a training."""


def stop_at(line):
    """A log that interrupts the training at its n-th line."""
    lines = []

    def log(text):
        lines.append(text)
        if len(lines) == line:
            raise Stop

    return log
