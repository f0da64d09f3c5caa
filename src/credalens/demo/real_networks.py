"""Real networks first: five ResNet-18 on CIFAR-10, whose predictions are included, so that nothing is trained."""

from __future__ import annotations

from credalens.datasets import cifar10_ensemble
from credalens.evaluation import Evaluation, evaluate
from credalens.storage.source import Progress

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ROWS = 3000


def evaluate_real_networks(*, rows: int = ROWS, progress: Progress | None = None) -> Evaluation:
    """How well their uncertainty finds SVHN and Tiny-ImageNet, on the first ``rows`` images of each test set."""
    shipped = cifar10_ensemble()
    ood = {"SVHN": shipped.svhn[:, :rows], "Tiny-ImageNet": shipped.tiny_imagenet[:, :rows]}
    return evaluate(shipped.cifar10[:, :rows], ood, id_name="CIFAR-10", class_names=CLASSES, progress=progress)
