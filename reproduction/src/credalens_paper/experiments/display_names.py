"""The words that readers know: names of models, sets and metrics as the literature spells them."""

from __future__ import annotations

from typing import Any, Final

from credalens_paper.experiments.preparations import PREPARATIONS

_NAMES: Final = {
    "vgg16": "VGG16",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "efficientnet_b2": "EffB2",
    "vit_base": "ViT-B",
    "efficientnet_lite0": "EffLite0",
    "mlp": "MLP",
    "clinc150": "CLINC150",
    "clinc150-oos": "OOS requests",
    "cifar10": "CIFAR-10",
    "cifar10n": "CIFAR-10N",
    "cifar100": "CIFAR-100",
    "imagenet": "ImageNet",
    "imagenet-o": "ImageNet-O",
    "svhn": "SVHN",
    "tiny-imagenet": "Tiny-ImageNet",
    "cifar10-c": "CIFAR-10-C",
    "cifar100-c": "CIFAR-100-C",
    "backbone": "Backbone",
    "method": "Method",
    "id_set": "ID",
    "ood_set": "Set",
    "measure": "Measure",
    "metric": "Metric",
    "variant": "Variant",
    "preparation": "Images",
    "mean": "mean (bit)",
    "false_alarms": "false alarms (%)",
    "turned_away": "turned away (%)",
    "accepted_ACC": "accuracy of accepted (%)",
    "halved_accepted": "error rate halved: accepted (%)",
    "halved_left": "error rate halved: rate left (%)",
    "halved_broken": "error rate halved: halves above it (%)",
    "halved_turned_away": "error rate halved: turned away (%)",
    "coverage": "sets with the true class (%)",
    "classes_in_set": "classes in a set",
    "time_ms": "time (ms)",
    "cpu_ms": "CPU (ms)",
    "gpu_ms": "GPU (ms)",
    "uncertainty_ms": "uncertainty (ms)",
    "model_size_mb": "size (MB)",
    **{name: preparation.words for name, preparation in PREPARATIONS.items()},
}


def display_name(value: Any, /) -> str:
    """A key or value as readers know it.

    >>> display_name("resnet18"), display_name(5), display_name("digits")
    ('ResNet-18', '5', 'digits')
    """
    return _NAMES.get(str(value), str(value))
