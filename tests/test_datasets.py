"""The shipped predictions of real networks, and the exact measures on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import credalens
from credalens import lower_entropy, probability_intervals, upper_entropy, wrap
from credalens.datasets import cifar10_ensemble, cifar100_ensemble
from credalens.evaluation import ood_metrics
from tests import oracles

SETS = ("cifar10", "svhn", "tiny_imagenet")


def test_what_is_shipped():
    ensemble = cifar10_ensemble()
    assert [getattr(ensemble, name).shape for name in SETS] == [(5, 10_000, 10), (5, 26_032, 10), (5, 10_000, 10)]
    assert all(getattr(ensemble, name).dtype == np.float16 for name in SETS)
    many = cifar100_ensemble()
    shapes = [getattr(many, name).shape for name in ("cifar100", "svhn", "tiny_imagenet")]
    assert shapes == [(5, 2000, 100), (5, 1000, 100), (5, 1000, 100)]
    files = (Path(credalens.__file__).parent / "data").glob("*.npz")
    assert sum(file.stat().st_size for file in files) <= 8_000_000
    with pytest.raises(ValueError, match="read-only"):
        ensemble.cifar10[0, 0, 0] = 1


@pytest.mark.parametrize("name", SETS)
def test_entropies_are_exact_on_real_predictions(name):
    rng = np.random.default_rng(0)
    members = getattr(cifar10_ensemble(), name)
    members = members[:, rng.choice(members.shape[1], 60, replace=False)]
    low, high = probability_intervals(members.astype(np.float64) / members.astype(np.float64).sum(-1, keepdims=True))
    lowest, (bound, _) = lower_entropy(low, high, return_bounds=True)
    np.testing.assert_allclose(lowest, [oracles.lower_entropy(a, b) for a, b in zip(low, high, strict=True)], atol=1e-9)
    assert (lowest - bound <= 1e-9).all()
    expected = [oracles.upper_entropy(a, b)[0] for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(upper_entropy(low, high), expected, rtol=0, atol=1e-12)


def test_every_lower_entropy_is_certified_within_the_default_budget():
    for name in SETS:
        prediction = wrap(getattr(cifar10_ensemble(), name))
        assert (prediction.aleatoric - prediction.aleatoric_bound <= 1e-9).all()
    prediction = wrap(cifar100_ensemble().svhn)
    assert (prediction.aleatoric - prediction.aleatoric_bound <= 1e-9).all()


def test_epistemic_uncertainty_finds_images_from_elsewhere():
    ensemble = cifar10_ensemble()
    known = wrap(ensemble.cifar10)
    for unknown in (wrap(ensemble.svhn), wrap(ensemble.tiny_imagenet)):
        credal = ood_metrics(known.epistemic, unknown.epistemic)
        classical = ood_metrics(known.classical.epistemic, unknown.classical.epistemic)
        assert credal.auroc > classical.auroc > 0.8
