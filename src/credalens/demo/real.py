"""Real networks for comparison: the predictions of five ResNet-18 that come along."""

from __future__ import annotations

from credalens.datasets import cifar10_ensemble
from credalens.evaluation import Comparison, compare_auroc
from credalens.prediction import wrap

__all__ = ["compare_real_networks", "real_networks_text"]


def compare_real_networks() -> dict[str, Comparison]:
    """OOD data set -> AUROC of epistemic uncertainty from credal sets (a) against mutual information (b).

    >>> compare_real_networks()["SVHN"].difference > 0.01
    True
    """
    shipped = cifar10_ensemble()
    known = wrap(shipped.cifar10)
    found = {}
    for name, members in (("SVHN", shipped.svhn), ("Tiny-ImageNet", shipped.tiny_imagenet)):
        other = wrap(members)
        found[name] = compare_auroc(
            known.epistemic, other.epistemic, known.classical.epistemic, other.classical.epistemic
        )
    return found


def real_networks_text() -> str:
    """The comparison in one sentence."""
    parts = [
        f"{name} at {100 * one.a:.1f} % (averaging {100 * one.b:.1f} %, difference {100 * one.difference:+.1f} with a "
        f"{100 * one.level:g} % interval from {100 * one.low:+.1f} to {100 * one.high:+.1f})"
        for name, one in compare_real_networks().items()
    ]
    return (
        "For comparison five real networks, ResNet-18 on CIFAR-10, whose predictions come along: by AUROC epistemic "
        f"uncertainty from credal sets finds {' and '.join(parts)}."
    )
