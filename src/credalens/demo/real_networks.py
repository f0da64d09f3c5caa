"""Real networks for comparison: the predictions of five ResNet-18 that come along."""

from __future__ import annotations

from credalens.datasets import cifar10_ensemble
from credalens.evaluation import Comparison, compare_auroc
from credalens.prediction import wrap


def compare_real_networks() -> dict[str, Comparison]:
    """OOD data set -> AUROC of epistemic uncertainty from credal sets (a) against mutual information (b).

    >>> compare_real_networks()["SVHN"].difference > 0.01
    True
    """
    ensemble = cifar10_ensemble()
    cifar10 = wrap(ensemble.cifar10)
    comparisons = {}
    for name, members in (("SVHN", ensemble.svhn), ("Tiny-ImageNet", ensemble.tiny_imagenet)):
        ood = wrap(members)
        comparisons[name] = compare_auroc(
            cifar10.epistemic, ood.epistemic, cifar10.classical.epistemic, ood.classical.epistemic
        )
    return comparisons


def real_networks_text() -> str:
    """The comparison in one sentence."""
    parts = [
        f"{name} at {100 * c.a:.1f} % (averaging {100 * c.b:.1f} %, difference {100 * c.difference:+.1f} with a "
        f"{100 * c.level:g} % interval from {100 * c.low:+.1f} to {100 * c.high:+.1f})"
        for name, c in compare_real_networks().items()
    ]
    return (
        "For comparison five real networks, ResNet-18 on CIFAR-10, whose predictions come along: by AUROC epistemic "
        f"uncertainty from credal sets finds {' and '.join(parts)}."
    )
